#pragma once

#include <cstddef>
#include <vector>

#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// Gives the leases their places in the tree that mirrors the host's, where the mapping asks for it
/// and the persistent configuration changes. A device that is plugged into a running guest has its
/// place already: the tree cannot grow there.
void mirrorPlaces(const AttachInput& input, AttachDecision& decision);

/// How many of `placed` would have their host distance to the device of `candidate` at its place. 0
/// where the trees are not known.
std::size_t matchingDistances(const AttachInput& input, const std::vector<Lease>& placed,
                              const Lease& candidate);

}  // namespace vfpass::plan
