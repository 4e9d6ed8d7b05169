#pragma once

#include "vfpass/host/root.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Netdevs and RDMA devices of a function, with state, rate, GUID and firmware. For a VF only their
/// names: reading a port's state is a firmware command, and there can be a thousand VFs.
void readPorts(const host::Folder& folder, bool isVf, TopologyFunction& function,
               std::vector<TopologyProblem>& problems);

}  // namespace vfpass::inventory
