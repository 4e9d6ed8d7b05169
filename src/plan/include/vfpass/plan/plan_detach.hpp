#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// The steps that restore devices, and the devices that are not restored.
struct Restoration {
  std::vector<Step> steps;
  std::vector<std::string>
      notes;  ///< one line for each device that is not restored, with the reason
};

/// Steps on the host that restore the VFs and PCI functions of `leases` to the state recorded
/// before their first lease. `allLeases` and the inventory's holders tell whether others still need
/// a PF's VFs. A device that no longer exists, or differs from the leased one (lease_device.hpp),
/// is left unchanged; its lease still ends.
Restoration planRestore(const std::vector<Lease>& leases, const std::vector<Lease>& allLeases,
                        const Inventory& inventory);

/// The removal of a PF's VFs when `leases`, all of this PF, end. nullopt if vfpass has not created
/// the VFs, another lease of the PF remains, or another VF is in use.
std::optional<Step> removalOfVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                 const std::vector<Lease>& allLeases,
                                 const std::vector<Holder>& holders);

/// The complete input of detach.
struct DetachInput {
  Uuid domain;
  std::string domainName;
  Scope scope;
  std::vector<Lease> leases;      ///< of all domains
  std::set<std::string> plugged;  ///< entries whose device the running domain has
  std::vector<Lease> liveLeases;  ///< in the running domain's metadata
  bool xmlIsOurs = false;         ///< the persistent XML has elements of vfpass
  bool keep = false;              ///< leave the devices and their settings to the domain
  Inventory inventory;
};

/// First unplugs the devices from the running guest, then edits the XML, so that the domain cannot
/// start with VFs that are being removed, then restores the host. A VF that remains in the other
/// configuration stays leased. A device that attach took over stays with the running guest, and so
/// does what it has: only its lease ends. The scope must then be that of the whole domain.
Plan planDetach(const DetachInput& input);

}  // namespace vfpass::plan
