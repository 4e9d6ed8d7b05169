#pragma once

#include <string>
#include <vector>

#include "vfpass/guest/agent.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::guest {

/// Who in the guest would lose something with this device.
struct DeviceUse {
  std::vector<std::string> users;          ///< safe for terminals, one phrase each
  std::vector<std::string> notObservable;  ///< what the guest did not let us see, and why
};

/// Asks the guest: addresses and masters of its interface with the lease's MAC or port GUID, and
/// processes that hold its RDMA device open. Never throws for what the guest does.
DeviceUse findUsers(Agent& agent, const Lease& lease);

}  // namespace vfpass::guest
