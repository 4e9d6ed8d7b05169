#pragma once

#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// Chooses the MAC and GUIDs that the mapping leaves to vfpass, and adds a problem for each address
/// that is already used elsewhere. `decided`: leases already decided for the same mapping.
void settleAddresses(const AttachInput& input, const MappedVf& entry, const Lease* earlier,
                     const std::vector<Lease>& decided, Lease& lease,
                     std::vector<Objection>& objections);

}  // namespace vfpass::plan
