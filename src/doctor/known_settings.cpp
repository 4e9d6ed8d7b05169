#include "known_settings.hpp"

#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <array>

#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::doctor {
namespace {

using Setting = std::pair<std::string, std::string>;

bool same(std::string_view one, std::string_view other) { return toLower(one) == toLower(other); }

Setting settingIn(std::string_view line) {
  const auto equals = line.find('=');
  const auto value =
      equals == std::string_view::npos ? std::string_view() : line.substr(equals + 1);
  return {std::string(trim(line.substr(0, equals))), std::string(trim(value))};
}

// Lines that end in a backslash go on in the next one (systemd.syntax(7)).
std::vector<std::string> continuedLines(std::string_view text) {
  std::vector<std::string> lines;
  bool goesOn = false;
  for (const std::string& line : splitLines(text)) {
    const auto part = trim(line);
    if (part.starts_with('#') || part.starts_with(';')) {
      continue;
    }
    if (!goesOn) {
      lines.emplace_back();
    }
    goesOn = part.ends_with('\\');
    lines.back() += part.substr(0, part.size() - (goesOn ? 1 : 0));
  }
  return lines;
}

void keep(const IniSection& section, std::string_view key, IniSection& kept) {
  if (const std::string value = section.value(key); !value.empty()) {
    kept.settings.emplace_back(key, value);
  }
}

}  // namespace

bool IniSection::is(std::string_view other) const { return same(name, other); }

std::string IniSection::value(std::string_view key) const {
  std::string found;
  for (const auto& [each, assigned] : settings) {
    if (same(each, key)) {
      found = assigned;
    }
  }
  return found;
}

std::vector<IniSection> readIni(std::string_view text) {
  std::vector<IniSection> sections(1);
  for (const std::string& line : continuedLines(text)) {
    if (line.starts_with('[') && line.ends_with(']')) {
      sections.push_back({line.substr(1, line.size() - 2), {}});
    } else if (!line.empty()) {
      sections.back().settings.push_back(settingIn(line));
    }
  }
  return sections;
}

const IniSection* findSection(const std::vector<IniSection>& sections, std::string_view name) {
  const auto found =
      std::ranges::find_if(sections, [&](const IniSection& section) { return section.is(name); });
  return found == sections.end() ? nullptr : &*found;
}

std::string writeIni(const std::vector<IniSection>& sections) {
  std::string text;
  for (const IniSection& section : sections) {
    text += section.name.empty() ? "" : "[" + section.name + "]\n";
    for (const auto& [key, value] : section.settings) {
      text += key + "=" + value + "\n";
    }
  }
  return text;
}

std::string reducedProfile(std::string_view text) {
  IniSection profile{"connection", {}};
  std::vector<IniSection> vfs;
  for (const IniSection& section : readIni(text)) {
    if (section.is("connection")) {
      // The name, which people chose, only if the profile has no other identification.
      keep(section, section.value("uuid").empty() ? "id" : "uuid", profile);
    } else if (section.is("sriov") || !section.value("total-vfs").empty()) {
      keep(section, "total-vfs", vfs.emplace_back(IniSection{"sriov", {}}));
    }
  }
  if (vfs.empty()) {
    return {};
  }
  vfs.insert(vfs.begin(), profile);
  return writeIni(vfs);
}

// ifcfg files are shell assignments; nm-settings-ifcfg-rh(5) has the names.
std::string reducedIfcfg(std::string_view text) {
  const IniSection file = readIni(text).front();
  IniSection kept;
  for (const auto& [key, value] : file.settings) {
    if (key.starts_with("SRIOV_")) {
      kept.settings.emplace_back(key, key == "SRIOV_TOTAL_VFS" ? value : "");
    }
  }
  if (!kept.settings.empty()) {
    keep(file, "UUID", kept);
  }
  return writeIni({kept});
}

// A [SR-IOV] section counts without any key, too: it is there to configure a VF.
std::string reducedNetworkFile(std::string_view text) {
  std::vector<IniSection> sections;
  for (const IniSection& section : readIni(text)) {
    if (section.is("SR-IOV")) {
      keep(section, "VirtualFunction", sections.emplace_back(IniSection{"SR-IOV", {}}));
    } else if (!section.value("SR-IOVVirtualFunctions").empty() &&
               (section.is("Link") || section.name.empty())) {
      keep(section, "SR-IOVVirtualFunctions", sections.emplace_back(IniSection{section.name, {}}));
    }
  }
  return writeIni(sections);
}

namespace {

constexpr std::array netplanSettings{"virtual-function-count", "embedded-switch-mode",
                                     "delay-virtual-functions-rebind"};
constexpr const char* unreadable = "unreadable: virtual-function-count";

YAML::Node child(const YAML::Node& node, const char* key) {
  const YAML::Node found = node.IsMap() ? node[key] : YAML::Node();
  return found ? found : YAML::Node();
}

// `link` of anything but a device below `ethernets:` has another meaning (a VLAN's device).
NetplanDevice deviceOf(const std::string& id, const YAML::Node& node, bool withLink) {
  NetplanDevice device{id, {}};
  const auto add = [&](const char* name) {
    if (const YAML::Node value = child(node, name); value.IsScalar()) {
      device.settings.emplace_back(name, value.Scalar());
    }
  };
  std::ranges::for_each(netplanSettings, add);
  if (withLink) {
    add("link");
  }
  return device;
}

std::vector<NetplanDevice> devicesIn(const YAML::Node& root) {
  std::vector<NetplanDevice> devices;
  const auto add = [&](NetplanDevice device) {
    if (!device.settings.empty()) {
      devices.push_back(std::move(device));
    }
  };
  add(deviceOf("", root, false));
  const YAML::Node ethernets = child(child(root, "network"), "ethernets");
  if (ethernets.IsMap()) {
    for (const auto& each : ethernets) {
      add(deviceOf(each.first.IsScalar() ? each.first.Scalar() : "", each.second, true));
    }
  }
  return devices;
}

bool namesSetting(const std::string& text) {
  return std::ranges::any_of(
      netplanSettings, [&](const char* name) { return text.find(name) != std::string::npos; });
}

}  // namespace

std::optional<std::vector<NetplanDevice>> readNetplan(const std::string& text) {
  if (text.find(unreadable) == 0) {
    return std::nullopt;
  }
  try {
    return devicesIn(YAML::Load(text));
  } catch (const YAML::Exception&) {
    return namesSetting(text) ? std::nullopt
                              : std::optional<std::vector<NetplanDevice>>(std::in_place);
  }
}

std::string reducedNetplan(const std::string& text) {
  const auto devices = readNetplan(text);
  if (!devices) {
    return std::string(unreadable) + "\n";
  }
  YAML::Node root;
  for (const NetplanDevice& device : *devices) {
    for (const auto& [name, value] : device.settings) {
      (device.id.empty() ? root : root["network"]["ethernets"][device.id])[name] = value;
    }
  }
  return devices->empty() ? "" : YAML::Dump(root) + "\n";
}

namespace {

// Kernel arguments that concern devices and never hold private data.
constexpr std::array kernelArguments{"iommu",
                                     "intel_iommu",
                                     "amd_iommu",
                                     "intremap",
                                     "pci",
                                     "hugepages",
                                     "hugepagesz",
                                     "module.sig_enforce",
                                     "iommu.passthrough",
                                     "vfio.enable_unsafe_noiommu_mode",
                                     "vfio_iommu_type1.allow_unsafe_interrupts"};

// The settings that doctor checks. `knownSettings` keeps them with their values.
constexpr std::array settingNames{"sriov-num-vfs",
                                  "unmanaged-devices",
                                  "no-auto-default",
                                  "nm_unmanaged",
                                  "physfn",
                                  "allow_unsafe_interrupts",
                                  "enable_unsafe_noiommu_mode",
                                  "virt_enabled",
                                  "nv_peer_mem",
                                  "blacklist",
                                  "refusemanualstop"};

std::string keptArguments(std::string_view line) {
  std::string kept;
  std::size_t at = 0;
  while (at < line.size()) {
    const auto end = std::min(line.find_first_of(" \t\n", at), line.size());
    // The kernel removes the quotes of an argument (next_arg); not every boot loader does.
    std::string word(line.substr(at, end - at));
    std::erase(word, '"');
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    const bool setsVfs = name.ends_with(".num_vfs") || name.ends_with(".max_vfs");
    if (setsVfs || std::ranges::find(kernelArguments, name) != kernelArguments.end()) {
      kept += word + "\n";
    }
    at = end + 1;
  }
  return kept;
}

// The distribution and its relatives (os-release(5)).
std::string keptIdentity(const std::string& line) {
  return line.starts_with("ID=") || line.starts_with("ID_LIKE=") ? line + "\n" : "";
}

// Each setting and the word after it; the rest of the line may be private.
std::string keptSettings(const std::string& line) {
  const std::string lower = toLower(line);
  std::string kept;
  for (const std::string_view name : settingNames) {
    const auto at = lower.find(name);
    if (at == std::string::npos) {
      continue;
    }
    const auto value =
        std::min(lower.find_first_not_of(" \t=:+\"'}]", at + name.size()), lower.size());
    const auto end = std::min(lower.find_first_of(" \t\"',}#", value), lower.size());
    kept += lower.substr(at, end - at) + "\n";
  }
  return kept;
}

}  // namespace

std::string knownSettings(std::string_view path, std::string_view content) {
  if (path == "proc/cmdline") {
    return keptArguments(content);
  }
  const auto isIn = [&](std::string_view folder) {
    return path.find(folder) != std::string_view::npos;
  };
  if (isIn("netplan/") && path.ends_with(".yaml")) {
    return reducedNetplan(std::string(content));
  }
  if (isIn("NetworkManager/system-connections/")) {
    return reducedProfile(content);
  }
  if (isIn("etc/sysconfig/network-scripts/ifcfg-")) {
    return reducedIfcfg(content);
  }
  if (isIn("systemd/network/")) {
    return reducedNetworkFile(content);
  }
  const bool isRelease = path == "etc/os-release" || path == "usr/lib/os-release";
  std::string kept;
  for (const std::string& line : splitLines(content)) {
    const auto text = trim(line);
    if (!text.empty() && text.front() != '#' && text.front() != ';') {
      kept += isRelease ? keptIdentity(std::string(text)) : keptSettings(std::string(text));
    }
  }
  return kept;
}

}  // namespace vfpass::doctor
