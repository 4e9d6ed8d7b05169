#pragma once

#include <vector>

#include "guest_places.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The leases for the entries of `functions:`, in their order; adds a problem for each function
/// that is not available. An entry keeps guest address and originals of its earlier lease. `vfs`:
/// the leases of the mapping's VFs.
std::vector<Lease> decideFunctions(const AttachInput& input, const std::vector<Lease>& vfs,
                                   Places& places, std::vector<Objection>& objections);

}  // namespace vfpass::plan
