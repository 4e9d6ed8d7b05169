#include <algorithm>
#include <ostream>
#include <string_view>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

Cell verdict(const HostSetting& setting) {
  if (!setting.wanted) {
    return {"not managed", Tint::muted};
  }
  return setting.differs() ? Cell{"differs", Tint::bad} : Cell{"matches", Tint::good};
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

void writeLines(std::ostream& out, const std::string& name, const std::vector<Step>& steps,
                const Style& style) {
  for (const auto& step : steps) {
    out << printable(name) << ": " << printable(describe(step.action)) << '\n';
    writeStepReason(out, "  ", step, style);
  }
}

void writePfs(std::ostream& out, const std::vector<HostEntry>& entries, const Style& style) {
  Table table({"PF", "NETDEV", "SETTING", "WANTED", "FOUND", ""});
  for (const auto& entry : entries) {
    addRows(table, entry);
  }
  const bool anySetting =
      std::ranges::any_of(entries, [](const auto& entry) { return !entry.settings.empty(); });
  if (anySetting) {
    table.write(out, style);
  }
  for (const auto& entry : entries) {
    writeLines(out, entry.name, entry.steps, style);
  }
}

Cell verdict(const SoftRoceEntry& entry) {
  if (!entry.wanted && !entry.madeByVfpass) {
    return {"not managed", Tint::muted};
  }
  return entry.differs() ? Cell{"differs", Tint::bad} : Cell{"matches", Tint::good};
}

void writeLinks(std::ostream& out, const std::vector<SoftRoceEntry>& links, const Style& style) {
  Table table({"SOFTROCE", "WANTED ON", "FOUND ON", "CREATED BY", ""});
  for (const auto& link : links) {
    const std::string maker = !link.found ? nothing : link.madeByVfpass ? "vfpass" : "others";
    table.add({{link.name},
               {link.wanted.value_or(nothing)},
               {link.found.value_or(nothing)},
               {maker},
               verdict(link)});
  }
  table.write(out, style);
  for (const auto& link : links) {
    writeLines(out, link.name, link.steps, style);
  }
}

// A check that nobody wants and that is off needs no line.
void writeMemoryCheck(std::ostream& out, const MemoryCheckEntry& entry, const Style& style) {
  if (!entry.wanted && !entry.found.value_or(false)) {
    return;
  }
  const auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  Table table({"SETTING", "WANTED", "FOUND", ""});
  table.add({{"gpu-memory-check"},
             {text(entry.wanted)},
             {entry.found ? text(*entry.found) : notObservable},
             !entry.found      ? Cell{nothing, Tint::muted}
             : entry.differs() ? Cell{"differs", Tint::bad}
                               : Cell{"matches", Tint::good}});
  out << '\n';
  table.write(out, style);
}

void writeText(std::ostream& out, const HostReport& report, const Style& style) {
  if (report.pfs.empty() && report.softRoce.empty()) {
    out << "no PFs on this host or in host.yaml\n";
  }
  writePfs(out, report.pfs, style);
  if (!report.softRoce.empty()) {
    out << (report.pfs.empty() ? "" : "\n");
    writeLinks(out, report.softRoce, style);
  }
  if (report.memoryCheck) {
    writeMemoryCheck(out, *report.memoryCheck, style);
  }
}

// Only the descriptions of the steps, for readers that do not know steps.
Json actionsOf(const std::vector<Step>& steps) {
  return listJson(steps, [](const auto& step) { return describe(step.action); });
}

Json entryJson(const HostEntry& entry) {
  Json settings = listJson(entry.settings, [](const auto& setting) -> Json {
    return {{"name", setting.name},
            {"wanted", valueOrNull(setting.wanted)},
            {"found", valueOrNull(setting.found)},
            {"differs", setting.differs()}};
  });
  return {{"pf", entry.name},
          {"netdev", textOrNull(entry.netdev)},
          {"listed", entry.listed},
          {"settings", settings},
          {"actions", actionsOf(entry.steps)},
          {"steps", stepsJson(entry.steps)},
          {"failures", entry.failures},
          {"pending", entry.pending()}};
}

Json linkJson(const SoftRoceEntry& link) {
  return {{"name", link.name},
          {"wanted", valueOrNull(link.wanted)},
          {"found", valueOrNull(link.found)},
          {"made_by_vfpass", link.madeByVfpass},
          {"actions", actionsOf(link.steps)},
          {"steps", stepsJson(link.steps)},
          {"failures", link.failures},
          {"pending", link.pending()}};
}

Json memoryCheckJson(const MemoryCheckEntry& entry) {
  return {{"wanted", entry.wanted},
          {"found", entry.found ? Json(*entry.found) : Json()},
          {"differs", entry.differs()}};
}

void writeJson(std::ostream& out, const HostReport& report) {
  Json document = newDocument();
  document["pfs"] = listJson(report.pfs, entryJson);
  document["soft_roce"] = listJson(report.softRoce, linkJson);
  document["gpu_memory_check"] = report.memoryCheck ? memoryCheckJson(*report.memoryCheck) : Json();
  writeDocument(out, document);
}

}  // namespace

bool HostEntry::pending() const {
  return !failures.empty() || differs ||
         std::ranges::any_of(settings,
                             [](const HostSetting& setting) { return setting.differs(); });
}

void writeHost(std::ostream& out, const HostReport& report, const Style& style) {
  if (style.json) {
    writeJson(out, report);
  } else {
    writeText(out, report, style);
  }
}

namespace {

// OpenSM reads at most 4,095 bytes as one line, and takes the rest of a longer comment for a rule
// (osm_prtn_config_parse_file).
constexpr std::size_t longestName = 256;

// Without what the driver refused, because the VF does not have it.
std::string portGuidOf(const Lease& lease) {
  const VfSettings settings = acceptedSettings(lease);
  return settings.portGuid ? toString(*settings.portGuid) : "";
}

std::string nodeGuidOf(const Lease& lease) {
  const VfSettings settings = acceptedSettings(lease);
  return settings.nodeGuid ? toString(*settings.nodeGuid) : "";
}

std::string partitionText(const GuidList& list) {
  return list.partition ? hexadecimal(*list.partition) : "";
}

std::string shortName(const std::string& name) {
  return printable(name.size() > longestName ? name.substr(0, longestName) : name);
}

// OpenSM merges rules with the same P_Key, so the rules can stand beside those of other hosts.
void writeRules(std::ostream& out, const GuidList& list) {
  out << "# vfpass host guids: InfiniBand VFs leased on " << shortName(list.host) << '\n';
  for (const Lease& lease : list.leases) {
    std::string digits = portGuidOf(lease);
    std::erase(digits, ':');
    out << "# " << shortName(lease.domainName) << ' ' << shortName(lease.entry) << ", VF "
        << toString(lease.device) << "\nvfpass=" << partitionText(list) << " : 0x" << digits
        << "=full ;\n";
  }
}

// RFC 4180. A spreadsheet would execute a name such as `=cmd|...` as a formula, but shows it after
// an apostrophe.
std::string csvField(const std::string& text) {
  const bool isFormula =
      !text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos;
  const std::string plain = (isFormula ? "'" : "") + printable(text);
  if (plain.find_first_of(",\"") == std::string::npos) {
    return plain;
  }
  std::string quoted = "\"";
  for (const char character : plain) {
    quoted.append(character == '"' ? 2 : 1, character);
  }
  return quoted + '"';
}

void writeCsv(std::ostream& out, const GuidList& list) {
  out << "host,domain,entry,vf,node_guid,port_guid,p_key\n";
  for (const Lease& lease : list.leases) {
    out << csvField(list.host) << ',' << csvField(lease.domainName) << ',' << csvField(lease.entry)
        << ',' << toString(lease.device) << ',' << nodeGuidOf(lease) << ',' << portGuidOf(lease)
        << ',' << partitionText(list) << '\n';
  }
}

void writeTable(std::ostream& out, const GuidList& list, const Style& style) {
  if (list.leases.empty()) {
    out << "no leased InfiniBand VF has a port GUID\n";
    return;
  }
  Table table({"DOMAIN", "ENTRY", "VF", "NODE GUID", "PORT GUID"});
  for (const Lease& lease : list.leases) {
    table.add({{lease.domainName},
               {lease.entry},
               {toString(lease.device)},
               {textOrNothing(nodeGuidOf(lease))},
               {portGuidOf(lease)}});
  }
  table.write(out, style);
}

void writeJson(std::ostream& out, const GuidList& list) {
  Json document = newDocument();
  document["host"] = list.host;
  document["p_key"] = textOrNull(partitionText(list));
  document["vfs"] = listJson(list.leases, [](const Lease& lease) -> Json {
    return {{"domain", domainJson(lease.domainName, lease.domain)},
            {"entry", lease.entry},
            {"pf", toString(lease.pf)},
            {"vf", toString(lease.device)},
            {"node_guid", textOrNull(nodeGuidOf(lease))},
            {"port_guid", portGuidOf(lease)}};
  });
  writeDocument(out, document);
}

}  // namespace

void writeGuids(std::ostream& out, const GuidList& list, GuidFormat format, const Style& style) {
  if (style.json) {
    writeJson(out, list);
  } else if (format == GuidFormat::opensm) {
    writeRules(out, list);
  } else if (format == GuidFormat::csv) {
    writeCsv(out, list);
  } else {
    writeTable(out, list, style);
  }
}

}  // namespace vfpass::report
