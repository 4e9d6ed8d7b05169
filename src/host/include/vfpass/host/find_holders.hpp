#pragma once

#include <chrono>
#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// All current holders of these functions (Kernel::findHolders). `deadline` limits each netlink
/// exchange. Empty on a captured tree, because a snapshot contains no processes.
std::vector<Holder> findHolders(const Root& root, const std::vector<PciAddress>& functions,
                                std::chrono::milliseconds deadline);

}  // namespace vfpass::host
