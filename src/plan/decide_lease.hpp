#pragma once

#include <optional>
#include <set>
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

/// The leases for the entries of `functions:`, in their order; adds a problem for each function
/// that is not available. An entry keeps guest address and originals of its earlier lease. `vfs`:
/// the leases of the mapping's VFs.
std::vector<Lease> decideFunctions(const AttachInput& input, const std::vector<Lease>& vfs,
                                   Places& places, std::vector<Objection>& objections);

/// Chooses the VF for one entry of the mapping: the one it names, or the first that is free.
/// `taken`: indexes on this PF that other entries of the mapping use. Adds a problem and returns
/// nullopt when there is none.
std::optional<unsigned> chooseVf(const AttachInput& input, const MappedVf& entry,
                                 const PhysicalFunction& pf, const std::set<unsigned>& taken,
                                 std::vector<Objection>& objections);

/// The number of VFs that the PF has, or gets from this attach: what host.yaml requests, otherwise
/// what the mappings and leases of this host need of it. Not the card's maximum: each VF takes time
/// to create, pages of the card's memory in the host, and interrupt vectors from the other VFs.
unsigned vfCountFor(const AttachInput& input, const PhysicalFunction& pf);

}  // namespace vfpass::plan
