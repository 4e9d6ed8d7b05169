#pragma once

#include <optional>
#include <set>
#include <vector>

#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// Picks the VF for one entry of the mapping: the one it names, or the first that nobody has.
/// `taken` are indexes of this PF that other entries of the mapping have. Adds an objection when
/// there is none.
std::optional<unsigned> chooseVf(const AttachInput& input, const MappedVf& entry,
                                 const PhysicalFunction& pf, const std::set<unsigned>& taken,
                                 std::vector<Objection>& objections);

}  // namespace vfpass::plan
