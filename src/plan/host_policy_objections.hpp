#pragma once

#include <string>
#include <vector>

#include "vfpass/plan/host_policy.hpp"

namespace vfpass::plan {

/// Changes that `host apply` makes to a PF.
struct HostChanges {
  unsigned count = 0;     ///< VFs wanted
  bool setsMode = false;  ///< to policy.eswitchMode
  bool rebuilds = false;  ///< the count or the eswitch mode changes
  bool takesDown = false;
};

/// Problems with host.yaml for this PF: another card than expected, more VFs than it supports,
/// netdev settings without a netdev, or an eswitch mode that the driver does not report.
std::vector<Objection> checkPolicy(const HostInput& input);

/// Problems with the changes: users of VFs, leases, domains and
/// networks that would lose their VF, unfinished operations.
std::vector<Objection> checkChanges(const HostInput& input, const HostChanges& changes);

/// `PF 0000:3b:00.0 (ens1f0np0)`.
std::string nameOf(const PhysicalFunction& pf);

/// The users of VFs of this PF, the first few by name:
/// `VF 3 (0000:3b:00.4) is named by domain hand0`, `the PF is named by libvirt network pool`.
std::string nameDefinedUsers(const PhysicalFunction& pf, const std::vector<DeviceUser>& users);

/// `the devices of domain hand0 and 2 more are unknown`; at least one.
std::string describeUnknown(const std::vector<std::string>& unknown);

}  // namespace vfpass::plan
