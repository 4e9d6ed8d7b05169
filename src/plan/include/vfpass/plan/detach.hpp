#pragma once

#include <set>
#include <string>
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

/// Everything that detach looks at, gathered beforehand.
struct DetachInput {
  Uuid domain;
  std::string domainName;
  Scope scope;
  std::vector<Lease> leases;      ///< of all domains
  std::set<std::string> plugged;  ///< entries whose device the running domain has
  std::vector<Lease> liveLeases;  ///< in the running domain's metadata
  bool xmlIsOurs = false;         ///< the persistent XML has something of ours
  Inventory inventory;
};

/// First the running guest lets go, then the XML, so that nobody can start the domain on VFs that
/// are being taken away, then the host. A VF that the other configuration still has stays leased.
Plan planDetach(const DetachInput& input);

}  // namespace vfpass::plan
