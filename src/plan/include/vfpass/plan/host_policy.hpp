#pragma once

#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// The complete input of `host apply` for one PF.
struct HostInput {
  PhysicalFunction pf;
  PfSettings settings;
  bool observable = true;  ///< false: a captured tree, without eswitch mode and link
  PfPolicy policy;
  std::vector<Lease> leases;    ///< of all domains
  std::vector<Holder> holders;  ///< of the PF's VFs
  /// Domains and networks whose definitions name a VF of the PF (definedUsers); only needed if
  /// the policy has fewer VFs than the PF.
  std::vector<DeviceUser> users;
  /// Domains and networks that may name one, because their devices are unknown; as `users`.
  std::vector<std::string> unknownUsers = {};
  std::vector<QuarantinedDevice> quarantined = {};  ///< of the host
  std::vector<Plan> openWork;  ///< operations of other processes that have not ended
  bool allowDisruption = false;
};

/// The result of planning `host apply`. The plan has no steps when there are problems.
struct HostDecision {
  Plan plan;
  std::vector<Objection> objections;
};

/// Brings one PF to its policy. The VF count changes through 0, and the eswitch mode without VFs;
/// VFs that remain get their previous settings again. The problems are all mistakes in host.yaml at
/// once, or, if there are none, everything that would take a VF from its user, interfere with an
/// unfinished operation, or disrupt the host without consent.
HostDecision planHost(const HostInput& input);

}  // namespace vfpass::plan
