#pragma once

#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/pf_settings.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// Everything that `host apply` looks at for one PF, gathered beforehand.
struct HostInput {
  PhysicalFunction pf;
  PfSettings settings;
  bool observable = true;  ///< false: a captured tree, which tells no eswitch mode and no link
  PfPolicy policy;
  std::vector<Lease> leases;    ///< of all domains
  std::vector<Holder> holders;  ///< of the PF's VFs
  std::vector<Plan> openWork;   ///< begun by others, not ended
  bool allowDisruption = false;
};

/// What `host apply` would do. With objections there are no steps.
struct HostDecision {
  Plan plan;
  std::vector<Objection> objections;
};

/// Brings one PF to its policy. A count changes through 0, and the eswitch mode without VFs; what
/// others have set on the VFs that remain is set again. Objects to mistakes in host.yaml (all of
/// them at once), otherwise to everything that would take a VF away from its user, cross an
/// unfinished operation, or disrupt the host without consent.
HostDecision planHost(const HostInput& input);

}  // namespace vfpass::plan
