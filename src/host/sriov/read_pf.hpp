#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::host {

/// The PF with its VFs and, on the running system, their attributes. Nullopt when there is no
/// function at that address. Throws TimeoutError when rtnetlink hangs.
std::optional<PhysicalFunction> readPhysicalFunction(const Root& root, const PciAddress& address,
                                                     std::chrono::milliseconds netlinkDeadline);

/// Addresses of all SR-IOV capable functions that are NICs: by class, by a netdev, or by the driver
/// mlx5_core.
std::vector<PciAddress> findPhysicalFunctions(const Root& root);

}  // namespace vfpass::host
