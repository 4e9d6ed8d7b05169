#include <algorithm>

#include "gpu_checks.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/reset_methods.hpp"

namespace vfpass::doctor {
namespace {

// Other functions of its bus; none on a root bus, which cannot be reset.
std::vector<PciAddress> neighbours(const View& view, const TopologyFunction& gpu) {
  std::vector<PciAddress> found;
  for (const TopologyFunction& other : view.topology().functions) {
    if (gpu.parent && other.parent == gpu.parent && other.address != gpu.address) {
      found.push_back(other.address);
    }
  }
  return found;
}

std::vector<std::string> unmapped(const View& view, const std::vector<PciAddress>& functions) {
  std::vector<std::string> found;
  for (const PciAddress& function : functions) {
    if (std::ranges::find(view.wishes().gpus, function) == view.wishes().gpus.end()) {
      found.push_back(toString(function));
    }
  }
  return found;
}

// A function that is alone on a bus that can be reset has the method `bus`.
void checkBusReset(const View& view, const TopologyFunction& gpu, const std::string& expected,
                   Results& results) {
  const std::string subject = toString(gpu.address);
  const auto others = neighbours(view, gpu);
  const auto strangers = unmapped(view, others);
  if (others.empty()) {
    results.failed(subject, expected, "none",
                   "reboot the host between two guests, or choose another GPU");
  } else if (!strangers.empty()) {
    results.failed(subject, expected,
                   "none of its own; its bus, which could be reset instead, is shared with " +
                       join(strangers, ", "),
                   "name these functions below `gpus:` of the same mapping");
  } else {
    results.passed(subject, expected, "none of its own; with its bus");
  }
}

void checkReset(const View& view, const TopologyFunction& gpu, Results& results) {
  const std::string subject = toString(gpu.address);
  const std::string expected = "a reset, so that the next guest finds nothing of the last one";
  const auto methods = host::readResetMethods(view.root(), "sys/devices/" + gpu.path);
  if (!methods) {
    return results.unseen(
        subject, expected, "no reset_method in sysfs",
        "Linux 5.15 and later have it: cat /sys/bus/pci/devices/" + subject + "/reset_method");
  }
  if (!methods->empty()) {
    return results.passed(subject, expected, join(*methods, ", "));
  }
  checkBusReset(view, gpu, expected, results);
}

}  // namespace

void checkGpuResets(const View& view, Results& results) {
  for (const std::size_t number : view.gpus()) {
    checkReset(view, view.function(number), results);
  }
}

}  // namespace vfpass::doctor
