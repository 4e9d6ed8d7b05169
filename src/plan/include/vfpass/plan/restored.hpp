#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// In which ways the devices of leases that have ended differ from what was recorded before their
/// first lease, as they read back in `inventory`: one line for each device. A value that the driver
/// does not show (GUIDs on most kernels) is named as not readable. Empty: all of it was restored.
std::vector<std::string> findUnrestored(const std::vector<Lease>& ended,
                                        const Inventory& inventory);

}  // namespace vfpass::plan
