#pragma once

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// What the VF is set to when its lease ends: the recorded values; neutral ones where the lease set
/// something that could not be observed before.
VfSettings settingsToRestore(const Lease& lease);

/// What undoes a change of `wanted` on a VF that now shows `seen`.
VfSettings settingsToUndo(const VfSettings& wanted, const VfSettings& seen, bool infiniband);

/// Neutral values for a VF between two owners, reduced to what its driver shows or the lease set.
VfSettings settingsToScrub(const Lease& lease, const VfSettings& seen);

}  // namespace vfpass::plan
