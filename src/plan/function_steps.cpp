#include "function_steps.hpp"

#include "vfpass/base/driver_name.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

void reset(const PciFunction& function, const std::string& reason, std::vector<Step>& steps) {
  if (isVfioDriver(function.driver)) {
    steps.push_back({ResetFunction{function.address}, {}, reason});
  }
}

}  // namespace

void bindFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps) {
  const PciFunction* function = findFunction(inventory, lease.vf);
  const std::string driver = vfioDriverOf(lease);
  if (function == nullptr || function->driver == driver) {
    return;
  }
  const bool disrupts = !function->driver.empty();
  steps.push_back({BindDriver{lease.vf, driver, driver},
                   {BindDriver{lease.vf, function->driver, function->driverOverride}},
                   disrupts ? "it is bound to " + function->driver : "no driver is bound to it",
                   disrupts});
}

void restoreFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps) {
  const PciFunction* function = findFunction(inventory, lease.vf);
  if (function == nullptr) {
    return;
  }
  if (lease.state != LeaseState::reserved) {
    reset(*function, "it was not reset after its last use", steps);
  }
  const BindDriver bind{lease.vf, lease.original.driver, lease.original.driverOverride};
  if (bind.driver != function->driver || bind.driverOverride != function->driverOverride) {
    steps.push_back({bind, {}, "this was its driver before " + lease.entry + " was attached"});
  }
}

void scrubFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps) {
  const PciFunction* function = findFunction(inventory, lease.vf);
  if (function != nullptr && otherDevice(lease, *function).empty()) {
    reset(*function, "its next owner must not find data left by this one", steps);
  }
}

}  // namespace vfpass::plan
