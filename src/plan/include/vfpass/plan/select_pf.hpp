#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::plan {

/// The PFs that a selector matches: several if it is a card's serial number without function, or if
/// the card has several PCI Express connections (Socket Direct). None for `near`.
std::vector<const PhysicalFunction*> matchingPfs(const PfSelector& selector,
                                                 const Inventory& inventory);

/// The objection to a selector that matches several PFs.
Objection severalPfs(const PfSelector& selector,
                     const std::vector<const PhysicalFunction*>& matching,
                     const std::string& place);

/// The PF that a selector of this mapping names; nullptr after adding an objection that lists the
/// host's PFs, or those that match.
const PhysicalFunction* selectPf(const PfSelector& selector, const Mapping& mapping,
                                 const Inventory& inventory, const SourcePlace& place,
                                 std::vector<Objection>& objections);

/// The number of VFs that mappings can share: the present ones; of a PF without VFs as many as
/// host.yaml requests, otherwise as many as the card can have.
unsigned possibleVfCount(const PhysicalFunction& pf, const HostPolicy& policy);

/// The policy entry of host.yaml for this PF; nullptr if there is none.
const PfPolicy* policyOf(const PhysicalFunction& pf, const HostPolicy& policy);

/// The address that VF `index` of the PF has or will have; nullopt if the kernel does not report VF
/// offset and stride.
std::optional<PciAddress> vfAddress(const PhysicalFunction& pf, unsigned index);

/// The input for resolving `pf: {near: NAME}`.
struct NearInput {
  const Mapping& mapping;
  const HostPolicy& policy;
  const Inventory& inventory;
  const Topology& topology;
  const std::vector<Lease>& leases;  ///< of all domains
  Uuid domain;                       ///< whose mapping this is
};

/// A mapping that names every PF by address.
struct NearResolution {
  Mapping mapping;  ///< entries that could not be resolved still have `near`
  std::map<std::string, Objection> faults;  ///< why not, by the entry's name
  std::vector<std::string> reasons;         ///< for each resolved entry, the PF and its distance
};

/// True when any VF of the mapping should be near a GPU.
bool hasNear(const Mapping& mapping);

/// Gives each entry with `near` the PF with the shortest PCIe path to that function of the mapping
/// (topology::nearPfs) among those with the link type that its attributes need. Entries that need
/// the same type get PFs of one kind (topology::commonKind). A PF in another NUMA node (SYS) is not
/// near. A leased entry keeps its PF if others are only equally near, also under a new name.
NearResolution resolveNear(const NearInput& input);

}  // namespace vfpass::plan
