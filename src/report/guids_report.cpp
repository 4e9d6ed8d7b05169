#include "vfpass/report/command_reports.hpp"

#include <ostream>
#include <string_view>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
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
