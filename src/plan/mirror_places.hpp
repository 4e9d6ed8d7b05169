#pragma once

#include <cstddef>
#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// Places the leases in a tree that mirrors the host's, where the mapping requests it and the
/// persistent configuration changes. A device that is plugged into a running guest has its place
/// already, because the running tree cannot grow.
void mirrorPlaces(const AttachInput& input, AttachDecision& decision);

/// How many of `placed` would have the same distance to `candidate` in the guest as on the host. 0
/// if the trees are not known.
std::size_t matchingDistances(const AttachInput& input, const std::vector<Lease>& placed,
                              const Lease& candidate);

}  // namespace vfpass::plan
