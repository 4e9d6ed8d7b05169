#include <ostream>

#include "commands.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

ExitCode listQuarantine(Session& session) {
  session.requireThisHost("quarantine list");
  report::writeQuarantine(session.pagedOut(), session.quarantined(), session.style());
  return ExitCode::done;
}

PciAddress requireDevice(const std::string& text) {
  const auto device = parsePciAddress(text);
  if (!device) {
    throw Error(printable(text) + " is not a PCI address",
                "`vfpass quarantine list` shows the addresses, such as 0000:3b:00.2",
                ExitCode::badInput);
  }
  return *device;
}

ExitCode listHandOvers(Session& session, const std::string& text) {
  session.requireThisHost("quarantine records");
  const PciAddress device = text.empty() ? PciAddress{} : requireDevice(text);
  std::vector<report::HandOver> records;
  for (const auto& stored : session.readDatabase().handOvers()) {
    if (text.empty() || stored.record.device == device) {
      records.push_back(
          {stored.record, domain::isSealedRecord(stored.text, stored.seal, session.sealKey())});
    }
  }
  report::writeHandOvers(session.pagedOut(), records, session.style());
  return ExitCode::done;
}

// What of the release is not at this address: the card may have moved to another slot, and another
// one may have taken its place.
std::string placeOf(const PciAddress& device, Session& session) {
  const auto found = session.quarantined(device);
  if (!found) {
    return {};
  }
  std::string text;
  for (const PciAddress& place : found->elsewhere) {
    text += "; it is at " + toString(place) + " now";
  }
  return isReplaced(*found)
             ? text + "; this address has another card (" + printable(found->found) + ")"
             : text;
}

ExitCode releaseFromQuarantine(Session& session, const std::string& text) {
  session.requireChangesPossible("quarantine release");
  const PciAddress device = requireDevice(text);
  state::Database& database = session.database();  // first: it sets a damaged one aside
  const std::string place = placeOf(device, session);
  if (!database.endQuarantine(device)) {
    throw Error(toString(device) + " is not in quarantine",
                "run `vfpass quarantine list` to list the devices", ExitCode::badInput);
  }
  const std::string result = "released " + toString(device) + ": VMs can have it again" + place;
  session.operations().begin(events::Operation::quarantineRelease);
  session.operations().done(result);
  session.note(result);
  if (session.style().json) {
    report::writeQuarantine(session.out(), session.quarantined(), session.style());
  }
  return ExitCode::done;
}

}  // namespace

void addQuarantine(CLI::App& app, Runner& runner) {
  auto* quarantine = app.add_subcommand(
      "quarantine",
      "List devices that no VM gets after a failed reset or errors, and release them");
  quarantine->require_subcommand(1);
  auto* list = quarantine->add_subcommand("list", "List the devices, since when, and why");
  list->callback([&runner] { runner = listQuarantine; });
  auto* records = quarantine->add_subcommand(
      "records", "List the records of ended leases, newest first, and check their seals");
  const auto only = std::make_shared<std::string>();
  records->add_option("device", *only, "Only this PCI address")->type_name("DEVICE");
  records->callback([&runner, only] {
    runner = [only](Session& session) { return listHandOvers(session, *only); };
  });
  auto* release = quarantine->add_subcommand(
      "release", "Let VMs have this device again, once you have found the cause");
  const auto device = std::make_shared<std::string>();
  release->add_option("device", *device, "PCI address of the device")
      ->type_name("DEVICE")
      ->required();
  release->callback([&runner, device] {
    runner = [device](Session& session) { return releaseFromQuarantine(session, *device); };
  });
}

}  // namespace vfpass::commands
