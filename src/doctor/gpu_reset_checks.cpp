#include <algorithm>

#include "gpu_checks.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/function_reset.hpp"

namespace vfpass::doctor {
namespace {

// The other functions on its bus; none on a root bus, which cannot be reset.
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
    if (std::ranges::find(view.requirements().gpus, function) == view.requirements().gpus.end()) {
      found.push_back(toString(function));
    }
  }
  return found;
}

// A function that is alone on a bus that can be reset has the method `bus`.
void checkBusReset(const View& view, std::size_t number, const std::string& expected,
                   Results& results) {
  const TopologyFunction& gpu = view.function(number);
  const std::string subject = toString(gpu.address);
  const auto others = neighbours(view, gpu);
  const auto foreign = unmapped(view, others);
  if (others.empty()) {
    results.failedIfUsed(view.uses(number), subject, expected, "no reset method",
                         "reboot the host between two guests, or use another GPU");
  } else if (!foreign.empty()) {
    results.failedIfUsed(
        view.uses(number), subject, expected,
        "no reset method; its bus could be reset, but is shared with " + join(foreign, ", "),
        "add these functions to `functions:` of the same mapping");
  } else {
    results.passed(subject, expected, "no reset method; reset with its bus");
  }
}

void checkReset(const View& view, std::size_t number, Results& results) {
  const TopologyFunction& gpu = view.function(number);
  const std::string subject = toString(gpu.address);
  const std::string expected = "a reset method, so that no data remains for the next guest";
  const auto methods = host::readResetMethods(view.root(), "sys/devices/" + gpu.path);
  if (!methods) {
    return results.notObservable(
        subject, expected, "no reset_method in sysfs",
        "on Linux 5.15 or later: cat /sys/bus/pci/devices/" + subject + "/reset_method");
  }
  if (!methods->empty()) {
    return results.passed(subject, expected, join(*methods, ", "));
  }
  checkBusReset(view, number, expected, results);
}

}  // namespace

void checkGpuResets(const View& view, Results& results) {
  for (const std::size_t number : view.gpus()) {
    checkReset(view, number, results);
  }
}

}  // namespace vfpass::doctor
