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

}  // namespace vfpass::plan
