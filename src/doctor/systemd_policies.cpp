#include <array>
#include <map>
#include <set>

#include "competing_managers.hpp"
#include "known_settings.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

/// A .link or .network file, with its drop-ins.
struct NetworkUnit {
  std::string name;
  std::vector<std::string> files;  ///< the unit's own first; without it only its drop-ins count
};

constexpr std::array unitFolders{"etc/systemd/network", "run/systemd/network",
                                 "usr/local/lib/systemd/network", "usr/lib/systemd/network"};

// A file hides those of the same name in later directories; so does a drop-in (systemd.link(5)).
std::vector<NetworkUnit> networkUnits(const View& view, const std::string& suffix) {
  std::map<std::string, NetworkUnit> units;
  std::map<std::string, std::string> dropIns;  // by unit, slash, name
  for (const std::string folder : unitFolders) {
    for (const std::string& name : view.root().list(folder)) {
      if (name.ends_with(suffix)) {
        NetworkUnit& unit = units.try_emplace(name, NetworkUnit{name, {}}).first->second;
        if (unit.files.empty()) {
          unit.files.push_back(folder + "/" + name);
        }
      } else if (name.ends_with(suffix + ".d")) {
        for (const std::string& file : view.root().list(folder + "/" + name)) {
          const std::string unit = name.substr(0, name.size() - 2);
          dropIns.emplace(unit + "/" + file, folder + "/" + name + "/" + file);
        }
      }
    }
  }
  for (const auto& [key, file] : dropIns) {
    const auto unit = units.find(key.substr(0, key.find('/')));
    if (unit != units.end() && file.ends_with(".conf")) {
      unit->second.files.push_back(file);
    }
  }
  std::vector<NetworkUnit> found;
  for (auto& [name, unit] : units) {
    found.push_back(std::move(unit));
  }
  return found;
}

struct UnitSection {
  std::string file;
  IniSection section;
};

std::vector<UnitSection> sectionsOf(const View& view, const NetworkUnit& unit) {
  std::vector<UnitSection> sections;
  for (const std::string& file : unit.files) {
    for (IniSection& section : readIni(wholeText(view, file))) {
      sections.push_back({"/" + file, std::move(section)});
    }
  }
  return sections;
}

DeviceMatch matchOf(const std::vector<UnitSection>& sections) {
  DeviceMatch match;
  for (const auto& [file, section] : sections) {
    if (!section.is("Match")) {
      continue;
    }
    for (const auto& [key, value] : section.settings) {
      const std::string name = toLower(key);
      const auto words = splitWords(name.ends_with("macaddress") ? toLower(value) : value);
      if (name == "originalname" || name == "name") {
        match.names = words;
      } else if (name == "macaddress" || name == "permanentmacaddress") {
        match.macs = words;
      } else if (name == "path") {
        match.paths = words;
      } else if (name == "driver") {
        match.drivers = words;
      } else if (name != "type" || value != "ether") {
        match.unknown = true;
      }
    }
  }
  return match;
}

std::optional<VlanProtocol> protocolOf(const std::string& text) {
  const std::string word = toLower(text);
  return word == "802.1ad"  ? std::optional(VlanProtocol::dot1ad)
         : word == "802.1q" ? std::optional(VlanProtocol::dot1q)
                            : std::nullopt;
}

std::optional<LinkState> linkStateOf(const std::string& text) {
  if (text == "auto") {
    return LinkState::automatic;
  }
  const auto truth = truthOf(text);
  return truth ? std::optional(*truth ? LinkState::enable : LinkState::disable) : std::nullopt;
}

// [SR-IOV] of systemd.network(5) and systemd.link(5).
BootPolicy policyOfVf(const UnitSection& from) {
  const IniSection& section = from.section;
  BootPolicy policy;
  policy.file = from.file;
  policy.manager = "systemd";
  policy.vf = countOf(section.value("VirtualFunction"));
  policy.text = "[SR-IOV]";
  for (const auto& [key, value] : section.settings) {
    policy.text += " " + key + "=" + value;
  }
  const auto vlan = vlanIdOf(section.value("VLANId"));
  if (vlan) {
    policy.settings.vlan =
        Vlan{*vlan,
             static_cast<std::uint8_t>(countOf(section.value("QualityOfService")).value_or(0) & 7U),
             protocolOf(section.value("VLANProtocol")).value_or(VlanProtocol::dot1q)};
  }
  policy.settings.mac = parseMacAddress(section.value("MACAddress"));
  policy.settings.spoofCheck = truthOf(section.value("MACSpoofCheck"));
  policy.settings.trust = truthOf(section.value("Trust"));
  policy.settings.linkState = linkStateOf(section.value("LinkState"));
  return policy;
}

std::optional<BootPolicy> policyOfPf(const UnitSection& from, bool certain) {
  BootPolicy policy;
  policy.file = from.file;
  policy.manager = "systemd";
  const std::string count = from.section.value("SR-IOVVirtualFunctions");
  const std::string mtu = certain ? from.section.value("MTUBytes") : "";
  if (!from.section.is("Link") || (count.empty() && mtu.empty())) {
    return std::nullopt;
  }
  policy.vfCount = countOf(count);
  policy.mtu = countOf(mtu);
  policy.text = count.empty() ? "" : "SR-IOVVirtualFunctions=" + count;
  policy.text += mtu.empty() ? "" : (count.empty() ? "" : " ") + ("MTUBytes=" + mtu);
  return policy;
}

// Only the first file that matches a device counts.
void addUnit(const View& view, const NetworkUnit& unit, std::set<std::size_t>& configured,
             std::vector<BootPolicy>& policies) {
  const auto sections = sectionsOf(view, unit);
  const DeviceMatch match = matchOf(sections);
  std::vector<std::size_t> pfs = matchingPfs(view, match);
  std::erase_if(pfs, [&](std::size_t pf) { return configured.contains(pf); });
  if (pfs.empty() && !match.unknown && !match.empty()) {
    return;  // for other devices
  }
  if (match.unknown || match.empty()) {
    pfs.clear();
  } else {
    configured.insert(pfs.begin(), pfs.end());
  }
  for (const UnitSection& each : sections) {
    if (each.section.is("SR-IOV")) {
      addForEach(view, pfs, policyOfVf(each), policies);
    } else if (const auto policy = policyOfPf(each, !pfs.empty())) {
      addForEach(view, pfs, *policy, policies);
    }
  }
}

}  // namespace

std::vector<BootPolicy> systemdPolicies(const View& view) {
  std::vector<BootPolicy> policies;
  for (const char* suffix : {".link", ".network"}) {
    std::set<std::size_t> configured;
    for (const NetworkUnit& unit : networkUnits(view, suffix)) {
      addUnit(view, unit, configured, policies);
    }
  }
  return policies;
}

}  // namespace vfpass::doctor
