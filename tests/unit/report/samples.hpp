#pragma once

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

// One host with everything a report has to show: plain, missing, hidden and hostile values.
namespace vfpass::report::samples {

Inventory inventory();
Lease lease();
Lease functionLease();
Plan plan();

}  // namespace vfpass::report::samples
