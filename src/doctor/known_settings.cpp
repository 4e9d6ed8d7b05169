#include <algorithm>
#include <array>

#include "ini_settings.hpp"
#include "netplan_settings.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/doctor.hpp"

namespace vfpass::doctor {
namespace {

// Kernel arguments that concern devices and never hold private data.
constexpr std::array kernelArguments{
    "iommu",     "intel_iommu", "amd_iommu",          "intremap",         "pci",
    "hugepages", "hugepagesz",  "module.sig_enforce", "iommu.passthrough"};

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
    const auto word = line.substr(at, end - at);
    const auto name = word.substr(0, word.find('='));
    const bool setsVfs = name.ends_with(".num_vfs") || name.ends_with(".max_vfs");
    if (setsVfs || std::ranges::find(kernelArguments, name) != kernelArguments.end()) {
      kept += std::string(word) + "\n";
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
