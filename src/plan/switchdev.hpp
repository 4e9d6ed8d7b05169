#pragma once

#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// The attributes that the PF's driver cannot set in its eswitch mode.
std::set<Attribute> lackingAttributes(const PhysicalFunction& pf);

/// An objection if the entry, for VF `index` of a PF in switchdev mode, needs an attribute that the
/// driver cannot set there: one that is required, or a VLAN, which isolates the guest.
void checkSwitchdev(const MappedVf& entry, const PhysicalFunction& pf, unsigned index,
                    std::vector<Objection>& objections);

/// Names what the mapping states, or has by default, and the leases leave out for the mode.
std::vector<std::string> switchdevNotes(const AttachInput& input, const std::vector<Lease>& leases);

}  // namespace vfpass::plan
