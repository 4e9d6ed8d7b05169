#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// Steps on the host that bring the VFs and PCI functions of `leases` back to what was recorded
/// before their first lease; `allLeases` says whether a PF's VFs are still needed by others. What
/// is gone needs nothing.
std::vector<Step> planRestore(const std::vector<Lease>& leases, const std::vector<Lease>& allLeases,
                              const Inventory& inventory);

/// XML first, so that nobody can start the domain on VFs that are being taken away, then the host.
Plan planDetach(const Uuid& domain, const std::string& domainName, const std::vector<Lease>& leases,
                const std::vector<Lease>& allLeases, const Inventory& inventory, bool xmlIsOurs);

}  // namespace vfpass::plan
