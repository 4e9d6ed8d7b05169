#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::report {
namespace {

Json addressJson(const PciAddress& address) { return toString(address); }

Json quarantinedJson(const QuarantinedDevice& device) {
  return {
      {"device", toString(device.device)}, {"since", device.since},
      {"reason", device.reason},           {"identity", textOrNull(device.identity)},
      {"found", textOrNull(device.found)}, {"elsewhere", listJson(device.elsewhere, addressJson)}};
}

// Where the card is now. That a function cannot be identified does not say that it is gone: its
// identity may need root, or it answers with all ones.
std::string cardText(const QuarantinedDevice& device) {
  if (device.identity.empty()) {
    return nothing;
  }
  if (device.found == device.identity) {
    return "here";
  }
  std::vector<std::string> places;
  for (const PciAddress& place : device.elsewhere) {
    places.push_back("at " + toString(place));
  }
  if (isReplaced(device)) {
    places.emplace_back("another card is here");
  }
  return places.empty() ? "not identified" : join(places, ", ");
}

std::string resetText(const HandOverRecord& record) {
  return !record.reset                   ? "not reset"
         : record.reset->failure.empty() ? "done"
                                         : record.reset->failure;
}

Cell quarantineText(const HandOverRecord& record) {
  return record.quarantine.empty() ? Cell{nothing} : Cell{"yes", Tint::bad};
}

std::string attributesText(const HandOverRecord& record) {
  return !record.settings            ? nothing
         : record.notNeutral.empty() ? "neutral"
                                     : "not neutral: " + join(record.notNeutral, ", ");
}

Json resetJson(const HandOverRecord& record) {
  if (!record.reset) {
    return nullptr;
  }
  return {{"time", record.reset->time},
          {"methods", record.reset->methods},
          {"failure", textOrNull(record.reset->failure)},
          {"memory", textOrNull(record.reset->memory)}};
}

Json handOverJson(const HandOver& each) {
  const HandOverRecord& record = each.record;
  return {{"time", record.time},
          {"device", toString(record.device)},
          {"identity", textOrNull(record.identity)},
          {"domain", domainJson(record.domainName, record.domain)},
          {"entry", record.entry},
          {"generation", record.generation},
          {"reset", resetJson(record)},
          {"settings", record.settings ? settingsJson(*record.settings) : Json()},
          {"not_neutral", record.notNeutral},
          {"firmware", textOrNull(record.firmware)},
          {"errors", record.errors},
          {"unobserved", record.unobserved},
          {"quarantine", textOrNull(record.quarantine)},
          {"sealed", each.isSealed}};
}

}  // namespace

void writeHandOvers(std::ostream& out, const std::vector<HandOver>& records, const Style& style) {
  if (style.json) {
    Json document = newDocument();
    document["records"] = listJson(records, handOverJson);
    writeDocument(out, document);
    return;
  }
  if (records.empty()) {
    out << "no record of a hand-over\n";
    return;
  }
  Table table(
      {"ENDED", "DEVICE", "VM", "ENTRY", "RESET", "ATTRIBUTES", "ERRORS", "QUARANTINE", "SEAL"});
  for (const auto& [record, isSealed] : records) {
    table.add({{record.time},
               {toString(record.device)},
               {record.domainName},
               {record.entry},
               {resetText(record)},
               {attributesText(record)},
               {textOrNothing(join(record.errors, "; "))},
               quarantineText(record),
               isSealed ? Cell{"valid", Tint::good} : Cell{"none or wrong", Tint::bad}});
  }
  table.write(out, style);
}

void writeQuarantine(std::ostream& out, const std::vector<QuarantinedDevice>& devices,
                     const Style& style) {
  if (style.json) {
    Json document = newDocument();
    document["devices"] = listJson(devices, quarantinedJson);
    writeDocument(out, document);
    return;
  }
  if (devices.empty()) {
    out << "no device is in quarantine\n";
    return;
  }
  Table table({"DEVICE", "SINCE", "CARD", "REASON"});
  for (const QuarantinedDevice& device : devices) {
    table.add({{toString(device.device), Tint::bad},
               {device.since},
               {cardText(device)},
               {device.reason}});
  }
  table.write(out, style);
}

}  // namespace vfpass::report
