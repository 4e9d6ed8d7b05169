#include <algorithm>
#include <array>

#include "check.hpp"
#include "remedies.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/driver_modules.hpp"
#include "vfpass/host/find_holders.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* anyDriver = "a VFIO driver, nvidia or none";
// Compute drivers of other vendors, which can lose a device at run time (drm_dev_unplug), so that
// attach can bind a GPU that nobody uses. That was never tested; VFIO from the boot on is safer.
constexpr std::array otherComputeDrivers{"amdgpu", "xe", "i915"};
// As modprobe.d(5) orders them.
constexpr std::array moduleFolders{"etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d",
                                   "usr/lib/modprobe.d", "lib/modprobe.d"};
constexpr const char* notInUse = "not in use, so that it can be unbound";
constexpr const char* ownFile = "/etc/modprobe.d/vfpass-gpu.conf";

// True: it has users, which have been reported.
bool reportUsers(const PciAddress& gpu, bool used, const host::GpuSurvey& survey,
                 Results& results) {
  const auto found = survey.users.find(gpu);
  if (found != survey.users.end()) {
    results.failedIfUsed(used, toString(gpu), notInUse, join(found->second.names, ", "),
                         join(found->second.remedies, "; "));
  }
  return found != survey.users.end();
}

void checkUsers(const PciAddress& gpu, bool used, const host::GpuSurvey& survey, Results& results) {
  const std::string subject = toString(gpu);
  if (reportUsers(gpu, used, survey, results)) {
    return;
  }
  if (!survey.blindSpot.empty()) {
    results.notObservable(subject, notInUse, "nvidia; " + survey.blindSpot,
                          "sudo fuser -v /dev/nvidia*");
  } else {
    results.passed(subject, notInUse, "nvidia, not in use");
  }
}

// A Grace GPU on plain vfio-pci loses its coherent memory.
void checkVfioDriver(const View& view, std::size_t number, Results& results) {
  const Device& gpu = view.function(number);
  const std::string best = host::bestVfioDriver(view.root(), "sys/devices/" + gpu.path);
  if (best == gpu.driver || best == "vfio-pci") {
    results.passed(toString(gpu.address), anyDriver, gpu.driver);
  } else {
    results.failedIfUsed(
        view.uses(number), toString(gpu.address),
        best + ", the most specific VFIO driver for this GPU", gpu.driver,
        "remove `driver: " + gpu.driver +
            "` from its entry in the mapping, and the tool or boot argument that binds "
            "it to " +
            gpu.driver + "; then run vfpass attach");
  }
}

// The file that keeps the module from being loaded for its devices; empty: none.
std::string blacklistOf(const View& view, const std::string& module) {
  for (const std::string folder : moduleFolders) {
    for (const std::string& name : view.root().list(folder)) {
      const auto settings = view.settings(folder + "/" + name);
      if (name.ends_with(".conf") &&
          std::ranges::find(settings, "blacklist " + module) != settings.end()) {
        return "/" + folder + "/" + name;
      }
    }
  }
  return {};
}

// Whether every device of the driver is a GPU for guests, and none is the host's display.
bool servesGuestsOnly(const View& view, const std::string& driver) {
  const auto& functions = view.topology().functions;
  for (std::size_t number = 0; number < functions.size(); ++number) {
    const Device& function = functions[number];
    const bool isDisplay =
        view.root().readNumber(View::pathOf(function, "boot_vga")).value_or(0) == 1;
    const bool isGuestGpu = function.role == FunctionRole::gpu && view.uses(number) && !isDisplay;
    if (function.driver == driver && !isGuestGpu) {
      return false;
    }
  }
  return true;
}

std::string idText(const Device& gpu) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned id : {gpu.vendor, gpu.device}) {
    text += text.empty() ? "" : ":";
    for (const unsigned shift : {12U, 8U, 4U, 0U}) {
      text += digits[id >> shift & 0xfU];
    }
  }
  return text;
}

// Without the driver, the host's other devices would go dark: VFIO takes only this one, before.
std::string remedyForOneGpu(const View& view, const Device& gpu) {
  const auto& functions = view.topology().functions;
  const auto same = std::ranges::count_if(functions, [&](const Device& other) {
    return other.vendor == gpu.vendor && other.device == gpu.device;
  });
  const std::string begin = "other devices of this host use " + gpu.driver + ", too: ";
  if (same > 1) {
    return begin + "set driver_override of " + toString(gpu.address) +
           " to vfio-pci at boot before " + gpu.driver +
           " is loaded, in a script of the initramfs: its ID does not distinguish it from them";
  }
  return begin + "let vfio-pci bind this one first, with `softdep " + gpu.driver +
         " pre: vfio-pci` and the ID " + idText(gpu) +
         " in `options vfio-pci ids=` in a file of /etc/modprobe.d, then " +
         rebuildInitramfs(view) + " and reboot";
}

// A module that is loaded stays; a blacklist takes effect at the next boot.
std::string remedyForDriver(const View& view, const Device& gpu) {
  const std::string effective = rebuildInitramfs(view) + " and reboot";
  if (const std::string file = blacklistOf(view, gpu.driver); !file.empty()) {
    return gpu.driver + " is blacklisted already in " + printable(file) + ": " + effective;
  }
  return servesGuestsOnly(view, gpu.driver) ? "echo blacklist " + shellArgument(gpu.driver) +
                                                  " >> " + ownFile + ", then " + effective
                                            : remedyForOneGpu(view, gpu);
}

bool isOtherComputeDriver(const Device& gpu) {
  return std::ranges::find(otherComputeDrivers, gpu.driver) != otherComputeDrivers.end();
}

void checkOtherDriver(const View& view, std::size_t number, const host::GpuSurvey& survey,
                      Results& results) {
  const Device& gpu = view.function(number);
  if (!reportUsers(gpu.address, view.uses(number), survey, results)) {
    results.warned(
        toString(gpu.address), anyDriver,
        gpu.driver + (survey.blindSpot.empty() ? ", not in use" : "; " + survey.blindSpot),
        remedyForDriver(view, gpu));
  }
}

host::GpuSurvey surveyOf(const View& view) {
  std::vector<PciAddress> held;
  std::vector<PciAddress> others;
  for (const std::size_t number : view.gpus()) {
    const Device& gpu = view.function(number);
    if (gpu.driver == "nvidia") {
      held.push_back(gpu.address);
    } else if (isOtherComputeDriver(gpu)) {
      others.push_back(gpu.address);
    }
  }
  auto survey = held.empty() && others.empty() ? host::GpuSurvey{}
                                               : host::surveyGpus(view.root(), held, others);
  if (!view.root().isLive() && !view.root().exists("proc/1")) {
    survey.blindSpot = "cannot see the host's processes";
  }
  return survey;
}

}  // namespace

void checkGpuDrivers(const View& view, Results& results) {
  const auto survey = surveyOf(view);
  for (const std::size_t number : view.gpus()) {
    const Device& gpu = view.function(number);
    if (gpu.driver == "nvidia") {
      checkUsers(gpu.address, view.uses(number), survey, results);
    } else if (isOtherComputeDriver(gpu)) {
      checkOtherDriver(view, number, survey, results);
    } else if (isVfioDriver(gpu.driver)) {
      checkVfioDriver(view, number, results);
    } else if (gpu.driver.empty()) {
      results.passed(toString(gpu.address), anyDriver, "none");
    } else {
      results.failedIfUsed(view.uses(number), toString(gpu.address), anyDriver, gpu.driver,
                           remedyForDriver(view, gpu));
    }
  }
}

}  // namespace vfpass::doctor
