#pragma once

#include <map>
#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::apply {

/// Resets functions in parallel and records how that ended for those that are leased. A function
/// whose reset fails goes into quarantine before the error is thrown, so that neither
/// `recover --abandon` nor the end of its lease gives it to another domain.
void resetDevices(const std::vector<ResetFunction>& resets, Tools& tools);

/// By device.
using NewUses = std::map<PciAddress, DeviceUse>;

/// The uses that begin with the leases that the plan records, read from the host: call it before
/// the plan's first step, and outside of a transaction, which keeps the database locked.
NewUses usesToBegin(const Plan& plan, Tools& tools);

/// Records a lease, and from when on errors of its device are the domain's: takes that out of
/// `uses`. Without it there, reads it if the device's last use was not by this domain.
void recordLease(const Lease& lease, NewUses& uses, Tools& tools);

/// Ends leases. A device that leaves its domain with it gets a sealed record; one with errors of
/// its hardware since the lease began goes into quarantine, in the same transaction.
void dropLeases(const std::vector<DropLease>& drops, Tools& tools);

}  // namespace vfpass::apply
