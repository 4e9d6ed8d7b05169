#pragma once

#include <set>

#include "vfpass/host/root.hpp"
#include "vfpass/host_capacity.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// BARs of these functions of `topology` (of a PF also those of one VF), and what the host has in
/// memory, huge pages and address bits. What cannot be read or makes no sense is left out.
HostCapacity readCapacity(const host::Root& root, const Topology& topology,
                          const std::set<PciAddress>& functions);

}  // namespace vfpass::inventory
