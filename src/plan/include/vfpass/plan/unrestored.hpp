#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// How the devices of ended leases differ from the state recorded before their first lease,
/// according to `inventory`: one line for each device. A value that the driver does not report
/// (GUIDs on most kernels) is named as not readable. Empty: everything was restored.
std::vector<std::string> findUnrestored(const std::vector<Lease>& ended,
                                        const Inventory& inventory);

}  // namespace vfpass::plan
