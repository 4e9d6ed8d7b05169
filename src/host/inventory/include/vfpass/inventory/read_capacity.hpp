#pragma once

#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/host_capacity.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::inventory {

/// Memory BARs in the text of a function's `resource` file, which has a line `start end flags` for
/// each resource: `count` lines from line `first` on. Omits unused BARs.
std::vector<MemoryBar> memoryBars(std::string_view resource, std::size_t first, std::size_t count);

/// The same for one VF: each VF BAR line of the PF covers the BARs of `totalVfs` VFs.
std::vector<MemoryBar> vfMemoryBars(std::string_view resource, unsigned totalVfs);

/// BARs of these functions of `topology` (for a PF also those of one VF), and the host's memory,
/// hugepages and address bits. Omits what is unreadable or invalid.
HostCapacity readCapacity(const host::Root& root, const Topology& topology,
                          const std::set<PciAddress>& functions);

}  // namespace vfpass::inventory
