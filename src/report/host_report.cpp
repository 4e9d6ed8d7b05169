#include "vfpass/report/host_report.hpp"

#include <algorithm>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

Cell verdict(const HostSetting& setting) {
  if (!setting.wanted) {
    return {"not managed", Tint::muted};
  }
  return setting.differs() ? Cell{"differs", Tint::bad} : Cell{"as wanted", Tint::good};
}

void addRows(Table& table, const HostEntry& entry) {
  for (const auto& setting : entry.settings) {
    table.add({{entry.name},
               {textOrNothing(entry.netdev)},
               {setting.name},
               {setting.wanted.value_or(nothing)},
               {setting.found.value_or(notObservable)},
               verdict(setting)});
  }
}

void writeText(std::ostream& out, const std::vector<HostEntry>& entries, const Style& style) {
  Table table({"PF", "NETDEV", "SETTING", "WANTED", "FOUND", ""});
  for (const auto& entry : entries) {
    addRows(table, entry);
  }
  const bool anySetting = std::any_of(entries.begin(), entries.end(),
                                      [](const auto& entry) { return !entry.settings.empty(); });
  if (entries.empty()) {
    out << "no PFs, and none named in host.yaml\n";
  } else if (anySetting) {
    table.write(out, style);
  }
  for (const auto& entry : entries) {
    for (const auto& action : entry.actions) {
      out << printable(entry.name) << ": " << printable(action) << '\n';
    }
    for (const auto& failure : entry.failures) {
      out << tinted("failed: ", Tint::bad, style) << printable(failure) << '\n';
    }
  }
}

Json entryJson(const HostEntry& entry) {
  Json settings = Json::array();
  for (const auto& setting : entry.settings) {
    settings.push_back({{"name", setting.name},
                        {"wanted", valueOrNull(setting.wanted)},
                        {"found", valueOrNull(setting.found)},
                        {"differs", setting.differs()}});
  }
  return {{"pf", entry.name},          {"netdev", textOrNull(entry.netdev)},
          {"listed", entry.listed},    {"settings", settings},
          {"actions", entry.actions},  {"failures", entry.failures},
          {"pending", entry.pending()}};
}

void writeJson(std::ostream& out, const std::vector<HostEntry>& entries) {
  Json document = newDocument();
  document["pfs"] = Json::array();
  for (const auto& entry : entries) {
    document["pfs"].push_back(entryJson(entry));
  }
  writeDocument(out, document);
}

}  // namespace

bool HostEntry::pending() const {
  return !failures.empty() ||
         std::any_of(settings.begin(), settings.end(),
                     [](const HostSetting& setting) { return setting.differs(); });
}

void writeHost(std::ostream& out, const std::vector<HostEntry>& entries, const Style& style) {
  if (style.json) {
    writeJson(out, entries);
  } else {
    writeText(out, entries, style);
  }
}

}  // namespace vfpass::report
