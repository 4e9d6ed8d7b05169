#pragma once

#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::apply {

/// Resets functions in parallel and records how that ended for those that are leased. A function
/// whose reset fails goes into quarantine before the error is thrown, so that neither
/// `recover --abandon` nor the end of its lease gives it to another domain.
void resetDevices(const std::vector<ResetFunction>& resets, Tools& tools);

/// Records a lease, and from when on errors of its device are the domain's.
void recordLease(const Lease& lease, Tools& tools);

/// Ends leases. A device that leaves its domain with it gets a sealed record; one with errors of
/// its hardware since the lease began goes into quarantine, in the same transaction.
void dropLeases(const std::vector<DropLease>& drops, Tools& tools);

}  // namespace vfpass::apply
