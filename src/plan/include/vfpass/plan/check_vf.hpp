#pragma once

#include <set>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Problems that keep this VF from being passed to a guest: it is in use, its IOMMU group is
/// shared, it has none, or interrupts can be injected. Allowances waive problems. `holders` may
/// also name other devices.
std::vector<Objection> checkVf(const VirtualFunction& vf, const std::set<Allowance>& allow,
                               bool unsafeInterrupts, const std::vector<Holder>& holders);

/// Problems with the leases on the PF as it is now: VF missing or at another address than the lease
/// records, card moved or replaced, and everything that checkVf() finds. For prepare, and after
/// creating VFs.
std::vector<Objection> checkLeasedVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                      const std::vector<Holder>& holders);

}  // namespace vfpass::plan
