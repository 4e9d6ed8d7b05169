#include "vfpass/plan/describe_devices.hpp"

#include "vfpass/base/text.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::plan {
namespace {

std::string resetOf(const PciFunction& function) {
  if (!function.resetMethods) {
    return "reset methods unknown";
  }
  if (!function.resetMethods->empty()) {
    return "reset " + join(*function.resetMethods, ", ");
  }
  return function.busPeers.empty()
             ? "cannot be reset: the next guest could read data left by this one"
             : "reset with its bus";
}

std::string driverOf(const PciFunction& function, const MappedFunction& entry) {
  const std::string driver = entry.driver.value_or(function.vfioDriver);
  return driver == function.vfioDriver
             ? driver
             : driver + " (" + function.vfioDriver + " is a better match)";
}

}  // namespace

std::vector<std::string> describeDevices(const AttachInput& input) {
  std::vector<std::string> lines;
  for (const auto& entry : input.mapping.functions) {
    if (const PciFunction* function = findFunction(input.inventory, entry.pci)) {
      lines.push_back(entry.name + ": driver " + driverOf(*function, entry) + ", " +
                      resetOf(*function));
    }
  }
  const std::string nvlink = topology::judgeNvlink(input.topology, input.mapping).summary;
  if (!nvlink.empty()) {
    lines.push_back(nvlink);
  }
  return lines;
}

}  // namespace vfpass::plan
