#include "holders/device_files.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "vfpass/base/text.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t holderLimit = 8;
constexpr unsigned nvidiaMajor = 195;  // NV_MAJOR_DEVICE_NUMBER of NVIDIA's driver

using DeviceFunctions = std::map<dev_t, PciAddress>;

bool isLeftToOthers(const std::string& path) {
  return path.find("/infiniband") != std::string::npos || path.find("/vfio") != std::string::npos;
}

// /sys/dev/char/195:0 links to the device.
void addFromSysfs(const Root& root, DeviceFunctions& devices) {
  const std::string folder = "sys/dev/char";
  for (const std::string& name : root.list(folder)) {
    const std::string target = root.linkTarget(folder + "/" + name).value_or("");
    const auto function = lastFunctionOnPath(target);
    const auto number = parseDeviceNumber(name);
    if (function && number && !isLeftToOthers(target)) {
      devices.emplace(*number, *function);
    }
  }
}

// NVIDIA's driver makes its devices without sysfs, and says their minor numbers here.
void addFromNvidia(const Root& root, DeviceFunctions& devices) {
  constexpr std::string_view key = "Device Minor:";
  const std::string folder = "proc/driver/nvidia/gpus";
  for (const std::string& name : root.list(folder)) {
    const auto function = parsePciAddress(name);
    const std::string text = root.readText(folder + "/" + name + "/information").value_or("");
    for (const std::string& line : splitLines(text)) {
      const auto minor = line.starts_with(key)
                             ? parseNumber(trim(std::string_view(line).substr(key.size())))
                             : std::nullopt;
      if (function && minor && *minor < 255) {
        devices.emplace(makedev(nvidiaMajor, static_cast<unsigned>(*minor)), *function);
      }
    }
  }
}

Holder holderOf(const PciAddress& function, const Process& process, const std::string& file) {
  return {HolderKind::unknown, function,
          describe(process) + " has its device file " + printable(file.substr(0, 64)) + " open",
          "end that program, or allow it by `allow: [unknown-holder]` in the mapping",
          std::nullopt};
}

}  // namespace

std::vector<Holder> deviceFileHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                      const std::vector<Process>& processes) {
  DeviceFunctions devices;
  addFromSysfs(root, devices);
  addFromNvidia(root, devices);
  std::vector<Holder> holders;
  std::map<PciAddress, std::size_t> counts;
  for (const Process& process : processes) {
    for (const OpenFile& file : process.files) {
      const auto found = file.device && !file.isBlock ? devices.find(*file.device) : devices.end();
      if (found == devices.end() ||
          std::ranges::find(functions, found->second, &FunctionFacts::address) == functions.end() ||
          counts[found->second]++ >= holderLimit) {
        continue;
      }
      holders.push_back(holderOf(found->second, process, file.target));
    }
  }
  return holders;
}

}  // namespace vfpass::host
