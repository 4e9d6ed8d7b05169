#pragma once

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// The values that vfpass itself sets on the VF: those that its driver has not refused. For an
/// <interface>, libvirt sets MAC and VLAN.
VfSettings settingsToApply(const Lease& lease);

/// The lease, with neutral values for what it does not state and a VF with the values `seen` has:
/// what somebody else left on the VF is not part of the lease.
Lease withoutLeftOvers(Lease lease, const VfSettings& seen);

/// The lease, with no refusals of what it states: the driver is asked again.
Lease askingAgain(Lease lease);

/// The lease, with neutral values for settings that an earlier version of it made on the same VF
/// and that it no longer has, such as the rate limit of a running guest whose mapping has none now.
Lease withoutEarlierSettings(const Lease& earlier, Lease lease);

/// The values that the VF gets when its lease ends: the recorded ones, and neutral ones for
/// settings of the lease that could not be observed before.
VfSettings settingsToRestore(const Lease& lease);

/// The values that roll back the lease's settings on a VF that now has `seen`.
VfSettings settingsToUndo(const Lease& lease, const VfSettings& seen);

/// The actions that roll back a bind of a VF: first the values, because the host's driver reads
/// them when it probes.
std::vector<Action> undoBinding(const Lease& lease, const VirtualFunction& vf);

/// Neutral values for a VF between two owners, limited to those that its driver reports or the
/// lease set, and has not refused.
VfSettings settingsToScrub(const Lease& lease, const VfSettings& seen);

}  // namespace vfpass::plan
