#pragma once

#include <set>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Why this VF cannot be given to a guest: somebody holds it, its IOMMU group is shared, it has
/// none, or interrupts can be injected. Allowances waive. `holders` may name other devices, too.
std::vector<Objection> checkVf(const VirtualFunction& vf, const std::set<Allowance>& allow,
                               bool unsafeInterrupts, const std::vector<Holder>& holders);

/// Why the leases do not fit the PF as it is now: VF missing, at another address than the lease
/// says, card moved or replaced, and everything checkVf() finds. For prepare, and after creating
/// VFs.
std::vector<Objection> checkLeasedVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                      const std::vector<Holder>& holders);

}  // namespace vfpass::plan
