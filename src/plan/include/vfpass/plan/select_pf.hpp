#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// The PF that a selector of this mapping names; nullptr after adding a problem that lists the
/// host's PFs.
const PhysicalFunction* selectPf(const PfSelector& selector, const Mapping& mapping,
                                 const Inventory& inventory, const SourcePlace& place,
                                 std::vector<Objection>& objections);

/// The desired number of VFs: the policy's, otherwise the maximum (fewer could leave none for the
/// next VM, because the count cannot be raised while VFs exist).
unsigned wantedVfCount(const PhysicalFunction& pf, const HostPolicy& policy);

/// The policy entry of host.yaml for this PF; nullptr if there is none.
const PfPolicy* policyOf(const PhysicalFunction& pf, const HostPolicy& policy);

/// The address that VF `index` of the PF has or will have; nullopt if the kernel does not report VF
/// offset and stride.
std::optional<PciAddress> vfAddress(const PhysicalFunction& pf, unsigned index);

}  // namespace vfpass::plan
