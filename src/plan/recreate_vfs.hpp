#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// The driver and driver_override that a VF should have.
struct VfBinding {
  std::string driver;
  std::string driverOverride;
};

/// Creates `count` VFs on the PF and gives them the settings (MAC, VLAN, rate and so on) of the VFs
/// with the same index in `before`, as far as they were readable. Drivers read addresses when they
/// probe, so VFs with addresses are bound last.
std::vector<Action> recreateVfs(const PhysicalFunction& before, unsigned count,
                                const std::function<VfBinding(unsigned)>& bindingOf,
                                std::optional<bool> autoprobe = std::nullopt);

/// The inverse of removing the VFs of a PF: creates as many again, with drivers and attributes as
/// before.
std::vector<Action> undoRemoval(const PhysicalFunction& before);

}  // namespace vfpass::plan
