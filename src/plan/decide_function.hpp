#pragma once

#include <vector>

#include "choose_place.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The leases for the entries of `gpus:`, in their order; adds a problem for each function that is
/// not available. An entry keeps guest address and originals of its earlier lease.
std::vector<Lease> decideFunctions(const AttachInput& input, Places& places,
                                   std::vector<Objection>& objections);

}  // namespace vfpass::plan
