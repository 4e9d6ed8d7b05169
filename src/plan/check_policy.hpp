#pragma once

#include <vector>

#include "vfpass/plan/host_policy.hpp"

namespace vfpass::plan {

/// What `host apply` has to do to a PF, as host.yaml and the PF differ.
struct HostChanges {
  unsigned count = 0;     ///< VFs wanted
  bool setsMode = false;  ///< to policy.eswitchMode
  bool rebuilds = false;  ///< the count or the eswitch mode changes
  bool takesDown = false;
};

/// What host.yaml asks of this PF that cannot be: another card, more VFs than it has, a netdev's
/// values where it has none, an eswitch mode that the driver does not show.
std::vector<Objection> checkPolicy(const HostInput& input);

/// Who stands against the changes: users of VFs, leases without a VF, unfinished operations.
std::vector<Objection> checkChanges(const HostInput& input, const HostChanges& changes);

/// `PF 0000:3b:00.0 (ens1f0np0)`.
std::string nameOf(const PhysicalFunction& pf);

}  // namespace vfpass::plan
