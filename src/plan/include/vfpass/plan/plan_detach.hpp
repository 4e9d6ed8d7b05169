#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/domain_facts.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// The steps that restore devices, and the devices that are not restored.
struct Restoration {
  std::vector<Step> steps;
  /// One line for each device that is not restored, with the reason, and for each PF of
  /// notesOnKeptVfs().
  std::vector<std::string> notes;
};

/// Who may need the VFs of a PF besides the leases that end. The references must outlive it.
struct OtherVfUsers {
  const std::vector<Lease>& leases;    ///< of all domains
  const std::vector<Holder>& holders;  ///< of the PF's VFs
  const Definitions& definitions;      ///< of the whole host
};

/// Steps on the host that restore the VFs and PCI functions of `leases` to the state recorded
/// before their first lease. `allLeases`, the inventory's holders and `definitions` tell whether
/// others still need a PF's VFs. A device that no longer exists, or differs from the leased one
/// (lease_device.hpp), is left unchanged; its lease still ends.
Restoration planRestore(const std::vector<Lease>& leases, const std::vector<Lease>& allLeases,
                        const Inventory& inventory, const Definitions& definitions);

/// The removal of a PF's VFs when `leases`, all of this PF and of one domain, end. nullopt if
/// vfpass has not created the VFs, another lease of the PF remains, another VF is in use, or a
/// definition names one, or may do so.
std::optional<Step> removalOfVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                 const OtherVfUsers& others);

/// The reason why the VFs stay, in one line, if it is nothing but definitions that name them or may
/// do so; empty otherwise. `leases` as above.
std::string noteOnKeptVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                          const OtherVfUsers& others);

/// The same for every PF of `leases`, which end and are of one domain.
std::vector<std::string> notesOnKeptVfs(const std::vector<Lease>& leases,
                                        const std::vector<Lease>& allLeases,
                                        const Inventory& inventory, const Definitions& definitions);

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
  Definitions definitions;  ///< of the whole host, this domain included
};

/// First unplugs the devices from the running guest, then edits the XML, so that the domain cannot
/// start with VFs that are being removed, then restores the host. A VF that remains in the other
/// configuration stays leased. A device that attach took over stays with the running guest, and so
/// does what it has: only its lease ends. The scope must then be that of the whole domain.
Plan planDetach(const DetachInput& input);

}  // namespace vfpass::plan
