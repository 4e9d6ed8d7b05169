#pragma once

#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// What `managed: yes` and `interface: true` need of the PF, because libvirt does a part of the
/// work then.
void checkForm(const MappedVf& entry, const PhysicalFunction& pf,
               std::vector<Objection>& objections);

/// Steps before and after a change of GUIDs on a VF that stays with the host's driver.
struct Reprobe {
  std::vector<Step> before;
  std::vector<Step> after;
};

/// GUIDs count from the driver's next probe. `managed: yes` leaves the VF on the host's driver, so
/// that has to let go of it and probe again. Empty in every other case.
Reprobe reprobeAround(const Lease& lease, const VirtualFunction& vf, const VfSettings& wanted);

}  // namespace vfpass::plan
