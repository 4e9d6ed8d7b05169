#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Checks what `managed: yes` and `interface: true` require of the PF, because libvirt then does
/// part of the work.
void checkForm(const MappedVf& entry, const PhysicalFunction& pf,
               std::vector<Objection>& objections);

/// Steps before and after a change of GUIDs on a VF that stays with the host's driver.
struct Reprobe {
  std::vector<Step> before;
  std::vector<Step> after;
};

/// GUIDs take effect at the driver's next probe. With `managed: yes` the VF stays bound to the
/// host's driver, which is therefore unbound and bound again. Empty in all other cases.
Reprobe reprobeAround(const Lease& lease, const VirtualFunction& vf, const VfSettings& wanted);

}  // namespace vfpass::plan
