#pragma once

#include <set>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Why this VF cannot be given to a guest: its netdev is in use on the host, its IOMMU group is
/// shared, it has none, interrupts can be injected, another process holds it. Allowances waive.
std::vector<Objection> checkVf(const VirtualFunction& vf, const std::set<Allowance>& allow,
                               bool unsafeInterrupts);

/// Why the leases do not fit the PF as it is now: VF missing, at another address than the lease
/// says, card moved or replaced, and everything checkVf() finds. For prepare, and after creating
/// VFs.
std::vector<Objection> checkLeasedVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases);

}  // namespace vfpass::plan
