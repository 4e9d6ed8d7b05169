#pragma once

#include <optional>
#include <set>
#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

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
