#include "holders/holder_kinds.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/host/container_and_guest_names.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/pci_function.hpp"

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
  return isDisplayOrAccelerator(function.classCode) || function.driver == "nvidia-nvswitch";
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

namespace {

// `process` is a task name, which the kernel truncates to 15 characters.
struct KnownUser {
  std::string_view process;
  std::string_view what;
  std::string_view remedy;
};

constexpr std::string_view endDisplay =
    "let another GPU drive the display, or stop it: systemctl stop display-manager";

constexpr std::array<KnownUser, 15> known{
    {{"nvidia-persiste", "the persistence daemon", "systemctl stop nvidia-persistenced"},
     {"nv-fabricmanage", "the fabric manager",
      "systemctl stop nvidia-fabricmanager, once nothing else on this host needs NVLink"},
     {"nv-hostengine", "the monitor (DCGM)", "systemctl stop nvidia-dcgm"},
     {"dcgm-exporter", "the monitor (DCGM)", "systemctl stop dcgm-exporter"},
     {"nvidia-powerd", "the power daemon", "systemctl stop nvidia-powerd"},
     {"nvidia-imex", "the IMEX daemon", "systemctl stop nvidia-imex"},
     {"Xorg", "the display server", endDisplay},
     {"Xwayland", "the display server", endDisplay},
     {"gnome-shell", "the display server", endDisplay},
     {"kwin_wayland", "the display server", endDisplay},
     {"kwin_x11", "the display server", endDisplay},
     {"sway", "the display server", endDisplay},
     {"weston", "the display server", endDisplay},
     // logind opens the device on behalf of the session (org.freedesktop.login1, TakeDevice).
     {"systemd-logind", "the login manager, for a display", endDisplay},
     {"plymouthd", "the boot splash", "plymouth quit"}}};

const KnownUser* knownUser(const std::string& name) {
  const auto* const found = std::ranges::find(known, name, &KnownUser::process);
  return found == known.end() ? nullptr : &*found;
}

constexpr std::size_t longestCgroup = std::size_t{64} << 10U;

std::string cgroupsOf(const Root& root, const Process& process) {
  return root.readText("proc/" + process.id + "/cgroup", longestCgroup).value_or("");
}

// A QEMU that renders for a guest's display on the host's GPU.
std::string guestOf(const Root& root, const Process& process) {
  return process.name.starts_with("qemu") ? parseQemuGuest(readCommandLine(root, process.id)).name
                                          : "";
}

}  // namespace

GpuUse gpuUseOf(const Root& root, const Process& process) {
  // Keep processes out of snapshots.
  const Root unrecorded;
  const Root& readFrom = root.isLive() ? unrecorded : root;
  const KnownUser* user = knownUser(process.name);
  const std::string name =
      (user == nullptr ? "" : std::string(user->what) + " ") + describe(process);
  const std::string groups = cgroupsOf(readFrom, process);
  if (const auto container = containerIn(groups)) {
    const std::string which = container->runtime + " container " + container->id;
    return {name + " in " + which,
            (user == nullptr ? "wait until its work ends, then stop the " : "stop the ") + which +
                " with its runtime"};
  }
  if (user != nullptr) {
    return {name, std::string(user->remedy)};
  }
  if (const std::string guest = guestOf(readFrom, process); !guest.empty()) {
    return {name + " of VM " + guest, "virsh shutdown " + shellArgument(guest)};
  }
  if (const std::string service = systemServiceIn(groups); !service.empty()) {
    return {name + " of " + service,
            "systemctl stop " + shellArgument(service) + ", once nothing on this host needs it"};
  }
  return {name, "wait until it ends, then try again"};
}

GpuSurvey surveyGpus(const Root& root, const std::vector<PciAddress>& gpus,
                     const std::vector<PciAddress>& others) {
  std::vector<FunctionFacts> functions;
  for (const PciAddress& gpu : gpus) {
    FunctionFacts& function = functions.emplace_back();
    function.address = gpu;
    function.driver = "nvidia";
  }
  for (const PciAddress& gpu : others) {
    functions.emplace_back().address = gpu;
  }
  const ProcessList list = readProcesses(root);
  GpuSurvey survey;
  survey.blindSpot = list.blindSpot.empty() ? list.unread : list.blindSpot;
  for (const DeviceFileUse& use : deviceFileUses(root, functions, list.processes)) {
    const GpuUse user = gpuUseOf(root, *use.process);
    GpuUsers& users = survey.users[use.function];
    users.names.push_back(user.who);
    if (std::ranges::find(users.remedies, user.remedy) == users.remedies.end()) {
      users.remedies.push_back(user.remedy);
    }
  }
  return survey;
}

}  // namespace vfpass::host
