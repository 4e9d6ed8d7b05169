#pragma once

#include <vector>

#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// Fills in MAC and GUIDs that the mapping leaves to vfpass, and objects to addresses that somebody
/// else has. `decided`: leases of the same mapping decided before.
void settleAddresses(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
                     const std::vector<Lease>& decided, Lease& lease,
                     std::vector<Objection>& objections);

}  // namespace vfpass::plan
