#pragma once

#include <optional>

#include "vfpass/finding.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// `numa-placement`: whether the VM's vCPUs and memory are on the host nodes of its devices, and
/// whether the guest can tell the nodes apart. A warning at most. nullopt if the host has one node,
/// or if no device has a known node. Pure.
std::optional<Finding> judgePlacement(const HostPlacement& placement);

/// The same of a host whose vfpass is too old to report it: waived.
Finding placementNotReported();

}  // namespace vfpass::verify
