#pragma once

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

// One host with all kinds of values that a report shows: plain, missing, hidden and hostile.
namespace vfpass::report::samples {

Inventory inventory();
Lease lease();
Lease functionLease();
Plan plan();

}  // namespace vfpass::report::samples
