#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// The PF that a selector of this mapping names, or nullptr after adding an objection that lists
/// the PFs there are.
const PhysicalFunction* selectPf(const PfSelector& selector, const Mapping& mapping,
                                 const Inventory& inventory, const SourcePlace& place,
                                 std::vector<Objection>& objections);

/// How many VFs the PF shall have: the policy's number, otherwise all it can have (fewer would
/// strand the next VM: a count cannot grow while VFs exist).
unsigned wantedVfCount(const PhysicalFunction& pf, const HostPolicy& policy);

/// The policy entry of host.yaml for this PF; nullptr when there is none.
const PfPolicy* policyOf(const PhysicalFunction& pf, const HostPolicy& policy);

/// Address at which VF `index` of the PF is or will be; nullopt where the device does not tell.
std::optional<PciAddress> vfAddress(const PhysicalFunction& pf, unsigned index);

}  // namespace vfpass::plan
