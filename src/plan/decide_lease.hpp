#pragma once

#include <optional>
#include <vector>

#include "choose_place.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The earlier lease of this entry; nullptr if there is none.
const Lease* earlierLease(const AttachInput& input, const std::string& entry);

/// Whether an attach of this entry has left the VF as it is, and its record was lost with the
/// database: it has the MAC that vfpass derives for the entry, and the driver for guests. What the
/// VF had before is not known any more.
bool isLeftover(const VirtualFunction& vf, const Lease& lease);

/// The leases for the entries of `vfs:`, in their order. An entry keeps VF, address, originals and
/// automatic values of its earlier lease where the mapping still allows them.
std::vector<Lease> decideLeases(const AttachInput& input, Places& places,
                                std::vector<Objection>& objections);

/// True when the leases differ at most in domain name, generation, originals, state, boot ID and VF
/// count.
bool sameTerms(const Lease& earlier, const Lease& wanted);

}  // namespace vfpass::plan
