#include "holders/holder_kinds.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/host/find_holders.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t usesPerFunction = 8;  // per function
constexpr unsigned nvidiaMajor = 195;       // NV_MAJOR_DEVICE_NUMBER of NVIDIA's driver
constexpr unsigned firstControl = 254;      // minors of /dev/nvidia-modeset and /dev/nvidiactl
constexpr std::string_view gpuFile = "/dev/nvidia";
constexpr std::string_view switchName = "nvidia-nvswitch";  // in /proc/devices
constexpr std::string_view switchFile = "/dev/nvidia-nvswitch";
constexpr unsigned switchControl = 255;  // minor of /dev/nvidia-nvswitchctl: NVSWITCH_CTL_MINOR

// True for RDMA and VFIO files: rdma_holders.cpp and vfio_holders.cpp report their users.
bool isReportedElsewhere(const std::string& path) {
  return path.find("/infiniband") != std::string::npos || path.find("/vfio") != std::string::npos;
}

std::optional<dev_t> gpuNumber(std::optional<std::uint64_t> minor) {
  return minor && *minor < firstControl
             ? std::optional(makedev(nvidiaMajor, static_cast<unsigned>(*minor)))
             : std::nullopt;
}

// NVIDIA's driver creates its devices without sysfs entries and lists their minor numbers here.
std::optional<dev_t> numberFromNvidia(const Root& root, const PciAddress& gpu) {
  constexpr std::string_view key = "Device Minor:";
  const auto text =
      root.readText("proc/driver/nvidia/gpus/" + toString(gpu) + "/information").value_or("");
  for (const std::string& line : splitLines(text)) {
    if (line.starts_with(key)) {
      return gpuNumber(parseNumber(trim(std::string_view(line).substr(key.size()))));
    }
  }
  return std::nullopt;
}

// The number of `/dev/nvidia3`, for files of a captured tree, which have no device number.
std::optional<dev_t> numberByName(const std::string& file) {
  return file.starts_with(gpuFile) ? gpuNumber(parseNumber(file.substr(gpuFile.size())))
                                   : std::nullopt;
}

// NVIDIA's driver asks the kernel for a free major number; `241 nvidia-nvswitch`.
std::optional<unsigned> switchMajor(const Root& root) {
  for (const std::string& line : splitLines(root.readText("proc/devices").value_or(""))) {
    const std::string_view text = trim(line);
    const auto space = text.find(' ');
    if (space != std::string_view::npos && text.substr(space + 1) == switchName) {
      const auto number = parseNumber(text.substr(0, space));
      return number && *number <= UINT32_MAX ? std::optional(static_cast<unsigned>(*number))
                                             : std::nullopt;
    }
  }
  return std::nullopt;
}

/// Maps device files to functions.
class DeviceFiles {
 public:
  DeviceFiles(const Root& root, const std::vector<FunctionFacts>& functions) {
    addFromSysfs(root, functions);
    for (const FunctionFacts& function : functions) {
      if (function.driver == "nvidia-nvswitch") {
        switches_.push_back(function.address);
      } else if (function.driver != "nvidia") {
        continue;
      } else if (const auto number = numberFromNvidia(root, function.address)) {
        numbers_.emplace(*number, function.address);
      } else {
        unnumbered_.push_back(function.address);
      }
    }
    switchMajor_ = switches_.empty() ? std::nullopt : switchMajor(root);
  }

  [[nodiscard]] std::vector<PciAddress> functionsOf(const OpenFile& file) const {
    const auto number = file.device ? file.device : numberByName(file.target);
    const auto known = number && !file.isBlock ? numbers_.find(*number) : numbers_.end();
    if (known != numbers_.end()) {
      return {known->second};
    }
    // This number may belong to any GPU whose number is unknown.
    if (!file.isBlock && number && major(*number) == nvidiaMajor && minor(*number) < firstControl) {
      return unnumbered_;
    }
    // The fabric manager opens all NVSwitches, and nothing maps their numbers to functions.
    return isSwitch(file) ? switches_ : std::vector<PciAddress>{};
  }

 private:
  [[nodiscard]] bool isSwitch(const OpenFile& file) const {
    if (file.device) {
      return !file.isBlock && switchMajor_ && major(*file.device) == *switchMajor_ &&
             minor(*file.device) != switchControl;
    }
    return file.target.starts_with(switchFile) &&
           parseNumber(file.target.substr(switchFile.size()));
  }
  // /sys/dev/char/226:1 links to the device.
  void addFromSysfs(const Root& root, const std::vector<FunctionFacts>& functions) {
    const std::string directory = "sys/dev/char";
    for (const std::string& name : root.list(directory)) {
      const std::string target = root.linkTarget(directory + "/" + name).value_or("");
      const auto function = lastFunctionOnPath(target);
      const auto number = parseDeviceNumber(name);
      if (function && number && !isReportedElsewhere(target) &&
          std::ranges::find(functions, *function, &FunctionFacts::address) != functions.end()) {
        numbers_.emplace(*number, *function);
      }
    }
  }

  std::optional<unsigned> switchMajor_;
  std::map<dev_t, PciAddress> numbers_;
  std::vector<PciAddress> unnumbered_;
  std::vector<PciAddress> switches_;
};

}  // namespace

std::vector<DeviceFileUse> deviceFileUses(const Root& root,
                                          const std::vector<FunctionFacts>& functions,
                                          const std::vector<Process>& processes) {
  const DeviceFiles files(root, functions);
  std::vector<DeviceFileUse> uses;
  std::map<PciAddress, std::size_t> counts;
  for (const Process& process : processes) {
    std::set<PciAddress> seen;
    for (const OpenFile& file : process.files) {
      for (const PciAddress& function : files.functionsOf(file)) {
        if (seen.insert(function).second && counts[function]++ < usesPerFunction) {
          uses.push_back({function, &process, file.target});
        }
      }
    }
  }
  return uses;
}

namespace {

constexpr std::size_t longestFile = 64;

bool isGpuOrSwitch(const Device& function) {
  constexpr std::uint32_t display = 0x03;
  constexpr std::uint32_t accelerator = 0x12;
  const std::uint32_t base = function.classCode >> 16U;
  return base == display || base == accelerator || function.driver == "nvidia-nvswitch";
}

Holder holderOf(const Root& root, const FunctionFacts& function, const DeviceFileUse& use) {
  const std::string open =
      " has its device file " + printable(use.file.substr(0, longestFile)) + " open";
  if (isGpuOrSwitch(function)) {
    const GpuUse user = gpuUseOf(root, *use.process);
    return {HolderKind::gpu, function.address, user.who + open, user.remedy, std::nullopt};
  }
  return {HolderKind::unknown, function.address, describe(*use.process) + open,
          "stop that program, or accept it with `allow: [unknown-holder]` in the mapping",
          std::nullopt};
}

}  // namespace

std::vector<Holder> deviceFileHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                      const std::vector<Process>& processes) {
  std::vector<Holder> holders;
  for (const DeviceFileUse& use : deviceFileUses(root, functions, processes)) {
    const auto function = std::ranges::find(functions, use.function, &FunctionFacts::address);
    holders.push_back(holderOf(root, *function, use));
  }
  return holders;
}

}  // namespace vfpass::host
