#pragma once

#include <string>
#include <vector>

#include "vfpass/agent/agent.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::agent {

/// What in the guest uses a device.
struct DeviceUse {
  std::vector<std::string> users;          ///< one phrase each, escaped for terminals
  std::vector<std::string> notObservable;  ///< checks that could not be made, and why
};

/// Queries the guest: addresses and master of the interface with the lease's MAC or port GUID, and
/// processes that have its RDMA device open. A failing guest ends up in `notObservable`; it never
/// makes this function throw.
DeviceUse findUsers(Agent& agent, const Lease& lease);

}  // namespace vfpass::agent
