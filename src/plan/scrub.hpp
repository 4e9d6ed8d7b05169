#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// Steps between two runs of a guest: reset, neutral values, and the lease back to reserved.
std::vector<Step> planScrub(const std::vector<Lease>& leases, const Inventory& inventory,
                            const std::string& bootId, const std::string& reason);

}  // namespace vfpass::plan
