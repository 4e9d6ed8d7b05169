#pragma once

#include <set>

#include "vfpass/host/root.hpp"
#include "vfpass/host_capacity.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// BARs of these functions of `topology` (for a PF also those of one VF), and the host's memory,
/// hugepages and address bits. Omits what is unreadable or invalid.
HostCapacity readCapacity(const host::Root& root, const Topology& topology,
                          const std::set<PciAddress>& functions);

}  // namespace vfpass::inventory
