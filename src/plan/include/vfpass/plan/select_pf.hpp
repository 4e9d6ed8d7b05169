#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"

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

}  // namespace vfpass::plan
