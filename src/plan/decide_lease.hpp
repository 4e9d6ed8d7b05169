#pragma once

#include <optional>
#include <vector>

#include "guest_places.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The earlier lease of this entry; nullptr if there is none.
const Lease* earlierLease(const AttachInput& input, const std::string& entry);

/// Whether an attach of this entry has left the VF as it is, and its record was lost with the
/// database: it has the MAC that vfpass derives for the entry, and the driver for guests. What the
/// VF had before is not known any more.
bool isLeftover(const VirtualFunction& vf, const Lease& lease);

/// A lease for this entry without its device. `kept`: its earlier lease if that is for the same
/// device.
Lease newLease(const AttachInput& input, const std::string& entry, const Lease* kept);

/// The leases for the entries of `vfs:`, in their order. An entry keeps VF, address, originals and
/// automatic values of its earlier lease where the mapping still allows them.
std::vector<Lease> decideLeases(const AttachInput& input, Places& places,
                                std::vector<Objection>& objections);

/// True when the leases differ at most in domain name, generation, originals, state, boot ID and VF
/// count.
bool sameTerms(const Lease& earlier, const Lease& wanted);

}  // namespace vfpass::plan
