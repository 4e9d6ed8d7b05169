#include <algorithm>
#include <iterator>

#include "competing_managers.hpp"
#include "known_settings.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::doctor {
namespace {

// `vlans=100.5.ad`: ID, priority, protocol (nm-settings-nmcli(5)); an entry of vfpass has one.
std::optional<Vlan> vlanOfText(const std::string& text) {
  const auto all = splitWords(text, ";");
  const auto parts = splitWords(all.size() == 1 ? all.front() : "", ".");
  const auto id = parts.empty() ? std::nullopt : vlanIdOf(parts[0]);
  if (!id) {
    return std::nullopt;
  }
  const unsigned qos = parts.size() > 1 ? countOf(parts[1]).value_or(0) : 0;
  const bool ad = parts.size() > 2 && parts[2] == "ad";
  return Vlan{*id, static_cast<std::uint8_t>(qos & 7U),
              ad ? VlanProtocol::dot1ad : VlanProtocol::dot1q};
}

VfSettings settingsOfText(const std::string& text) {
  VfSettings settings;
  Rate rate;
  bool limited = false;
  for (const std::string& word : splitWords(text)) {
    const auto equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "mac") {
      settings.mac = parseMacAddress(value);
    } else if (key == "spoof-check") {
      settings.spoofCheck = truthOf(value);
    } else if (key == "trust") {
      settings.trust = truthOf(value);
    } else if (key == "vlans") {
      settings.vlan = vlanOfText(value);
    } else if (key == "min-tx-rate" || key == "max-tx-rate") {
      (key == "min-tx-rate" ? rate.min : rate.max) = countOf(value).value_or(0);
      limited = true;
    }
  }
  settings.rate = limited ? std::optional(rate) : std::nullopt;
  return settings;
}

BootPolicy managerPolicy(const std::string& file, const std::string& text) {
  BootPolicy policy;
  policy.file = "/" + file;
  policy.manager = "NetworkManager";
  policy.text = text;
  return policy;
}

// An empty group means 0 VFs.
BootPolicy countPolicy(const std::string& file, const IniSection& group) {
  const std::string total = group.value("total-vfs");
  BootPolicy policy = managerPolicy(
      file, total.empty() ? "[sriov] without total-vfs, which means 0" : "total-vfs=" + total);
  policy.vfCount = total.empty() ? 0 : countOf(total);
  const std::string probe = group.value("autoprobe-drivers");
  const std::string mode = group.value("eswitch-mode");
  policy.probesVfs = truthOf(probe);
  policy.text += probe.empty() ? "" : " autoprobe-drivers=" + probe;
  policy.text += mode.empty() ? "" : " eswitch-mode=" + mode;
  // nm-settings-nmcli(5): 0 legacy, 1 switchdev; -1 preserves.
  if (mode == "0" || mode == "legacy") {
    policy.eswitchMode = "legacy";
  } else if (mode == "1" || mode == "switchdev") {
    policy.eswitchMode = "switchdev";
  }
  return policy;
}

DeviceMatch matchOfProfile(const std::vector<IniSection>& sections) {
  DeviceMatch match;
  for (const IniSection& section : sections) {
    if (section.is("connection") && !section.value("interface-name").empty()) {
      match.names = {section.value("interface-name")};
    }
    const bool port =
        section.is("ethernet") || section.is("802-3-ethernet") || section.is("infiniband");
    if (port && !section.value("mac-address").empty()) {
      match.macs = {toLower(section.value("mac-address"))};
    }
    if (section.is("match")) {
      for (const std::string& name : splitWords(section.value("interface-name"), ";, ")) {
        match.names.push_back(name);
      }
      match.unknown = section.value("interface-name").empty();
    }
  }
  return match;
}

std::vector<std::size_t> selectedPfs(const View& view, const DeviceMatch& match) {
  return match.empty() || match.unknown ? std::vector<std::size_t>() : matchingPfs(view, match);
}

void addProfile(const View& view, const std::string& file, std::vector<BootPolicy>& policies) {
  const auto sections = readIni(wholeText(view, file));
  const IniSection* group = findSection(sections, "sriov");
  if (group == nullptr) {
    return;
  }
  const DeviceMatch match = matchOfProfile(sections);
  const auto pfs = selectedPfs(view, match);
  if (pfs.empty() && !match.empty() && !match.unknown) {
    return;
  }
  BootPolicy count = countPolicy(file, *group);
  for (const IniSection& section : sections) {
    const std::string mtu = section.is("ethernet") ? section.value("mtu") : "";
    if (countOf(mtu).value_or(0) > 0) {
      count.mtu = countOf(mtu);
      count.text += " mtu=" + mtu;
    }
  }
  addForEach(view, pfs, count, policies);
  for (const auto& [key, value] : group->settings) {
    if (const auto vf = key.starts_with("vf.") ? countOf(key.substr(3)) : std::nullopt) {
      BootPolicy policy = managerPolicy(file, key + "=" + value);
      policy.vf = vf;
      policy.settings = settingsOfText(value);
      addForEach(view, pfs, policy, policies);
    }
  }
}

std::string unquoted(std::string text) {
  std::erase(text, '"');
  std::erase(text, '\'');
  return text;
}

// nm-settings-ifcfg-rh(5)
void addIfcfg(const View& view, const std::string& file, std::vector<BootPolicy>& policies) {
  const IniSection settings = readIni(wholeText(view, file)).front();
  DeviceMatch match;
  if (const std::string device = unquoted(settings.value("DEVICE")); !device.empty()) {
    match.names = {device};
  }
  if (const std::string mac = unquoted(settings.value("HWADDR")); !mac.empty()) {
    match.macs = {toLower(mac)};
  }
  const auto pfs = selectedPfs(view, match);
  for (const auto& [key, quoted] : settings.settings) {
    const std::string value = unquoted(quoted);
    BootPolicy policy = managerPolicy(file, key + "=" + value);
    if (key == "SRIOV_TOTAL_VFS") {
      policy.vfCount = countOf(value);
    } else if (key == "SRIOV_AUTOPROBE_DRIVERS") {
      policy.probesVfs = truthOf(value);
    } else if (key.starts_with("SRIOV_VF")) {
      policy.vf = countOf(key.substr(8));
      policy.settings = settingsOfText(value);
    } else {
      continue;
    }
    if (!pfs.empty() || match.empty()) {
      addForEach(view, pfs, policy, policies);
    }
  }
}

// `match-device=interface-name:ens*;mac:...` (NetworkManager.conf(5)); the names are enough here.
void addConfiguration(const View& view, const std::string& file,
                      std::vector<BootPolicy>& policies) {
  constexpr std::string_view byName = "interface-name:";
  for (const IniSection& section : readIni(wholeText(view, file))) {
    const std::string count = section.value("sriov-num-vfs");
    if (count.empty()) {
      continue;
    }
    DeviceMatch match;
    for (const std::string& word : splitWords(section.value("match-device"), ";, ")) {
      if (word.starts_with(byName)) {
        match.names.push_back(word.substr(byName.size() + (word[byName.size()] == '=' ? 1 : 0)));
      } else {
        match.unknown = true;
      }
    }
    BootPolicy policy = managerPolicy(file, "sriov-num-vfs=" + count);
    policy.vfCount = countOf(count);
    addForEach(view, selectedPfs(view, match), policy, policies);
  }
}

}  // namespace

std::vector<BootPolicy> networkManagerPolicies(const View& view) {
  std::vector<BootPolicy> policies;
  addConfiguration(view, "etc/NetworkManager/NetworkManager.conf", policies);
  for (const std::string& file :
       filesIn(view, {"etc/NetworkManager/conf.d", "run/NetworkManager/conf.d",
                      "usr/lib/NetworkManager/conf.d"})) {
    addConfiguration(view, file, policies);
  }
  for (const std::string& file : filesIn(
           view, {"etc/NetworkManager/system-connections", "run/NetworkManager/system-connections",
                  "usr/lib/NetworkManager/system-connections"})) {
    addProfile(view, file, policies);
  }
  for (const std::string& file : filesIn(view, {"etc/sysconfig/network-scripts"})) {
    if (file.find("/ifcfg-") != std::string::npos) {
      addIfcfg(view, file, policies);
    }
  }
  return policies;
}

}  // namespace vfpass::doctor
