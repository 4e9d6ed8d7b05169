#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// The driver that a VF is to have, and what its driver_override is to hold.
struct VfBinding {
  std::string driver;
  std::string driverOverride;
};

/// Creates `count` VFs on the PF and sets on them what others have set on those of the same indexes
/// that `before` shows: MAC, VLAN, rate and so on, as far as they were readable. Drivers read
/// addresses when they probe, so they come last where there are any.
std::vector<Action> recreateVfs(const PhysicalFunction& before, unsigned count,
                                const std::function<VfBinding(unsigned)>& bindingOf,
                                std::optional<bool> autoprobe = std::nullopt);

/// The inverse of removing the VFs of a PF: as many again, with drivers and attributes as before.
std::vector<Action> undoRemoval(const PhysicalFunction& before);

}  // namespace vfpass::plan
