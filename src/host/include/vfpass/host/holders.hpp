#pragma once

#include <chrono>
#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Everyone who holds one of these functions now (Kernel::findHolders). `deadline` bounds each
/// netlink exchange. Empty on a captured tree: a snapshot holds no processes.
std::vector<Holder> findHolders(const Root& root, const std::vector<PciAddress>& functions,
                                std::chrono::milliseconds deadline);

}  // namespace vfpass::host
