#pragma once

#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// The steps that restore devices, and which devices have none.
struct Restoration {
  std::vector<Step> steps;
  std::vector<std::string>
      notes;  ///< one line for each device that is not restored, with the reason
};

/// Steps on the host that restore the VFs and PCI functions of `leases` to what was recorded before
/// their first lease; `allLeases` and the inventory's holders say whether others still need a PF's
/// VFs. A device that is gone, or is another one than was leased (lease_device.hpp), is left alone;
/// its lease ends all the same.
Restoration planRestore(const std::vector<Lease>& leases, const std::vector<Lease>& allLeases,
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
