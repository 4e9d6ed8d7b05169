#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/inventory.hpp"

namespace vfpass::host {

/// The function with its VFs and, on the running system, their attributes. Nullopt when there is no
/// function at that address. Throws TimeoutError when rtnetlink hangs.
std::optional<PhysicalFunction> readPhysicalFunction(const Root& root, const PciAddress& address,
                                                     std::chrono::milliseconds netlinkDeadline);

/// Addresses of all functions that may have VFs and are NICs: by class, by having a netdev, or by
/// being driven by mlx5_core.
std::vector<PciAddress> findPhysicalFunctions(const Root& root);

}  // namespace vfpass::host
