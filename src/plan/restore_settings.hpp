#pragma once

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// What vfpass itself sets on the VF: of an <interface>, MAC and VLAN belong to libvirt.
VfSettings settingsToApply(const Lease& lease);

/// The lease, with neutral values for what an earlier state of it set on the same VF and it does
/// not state any more: such as the rate limit of a running guest whose mapping has none now.
Lease withoutEarlierSettings(const Lease& earlier, Lease lease);

/// What the VF is set to when its lease ends: the recorded values; neutral ones where the lease set
/// something that could not be observed before.
VfSettings settingsToRestore(const Lease& lease);

/// What undoes the lease's settings on a VF that now shows `seen`.
VfSettings settingsToUndo(const Lease& lease, const VfSettings& seen);

/// What undoes a bind of a VF: the values first, because the host's driver reads them when it
/// probes.
std::vector<Action> undoBinding(const Lease& lease, const VirtualFunction& vf);

/// Neutral values for a VF between two owners, reduced to what its driver shows or the lease set.
VfSettings settingsToScrub(const Lease& lease, const VfSettings& seen);

}  // namespace vfpass::plan
