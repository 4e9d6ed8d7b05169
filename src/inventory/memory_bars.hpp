#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "vfpass/host_capacity.hpp"

namespace vfpass::inventory {

/// Memory BARs in the text of a function's `resource` file, which has a line `start end flags` for
/// each resource: `count` lines from line `first` on. Omits unused BARs.
std::vector<MemoryBar> memoryBars(std::string_view resource, std::size_t first, std::size_t count);

/// The same for one VF: each VF BAR line of the PF covers the BARs of `totalVfs` VFs.
std::vector<MemoryBar> vfMemoryBars(std::string_view resource, unsigned totalVfs);

}  // namespace vfpass::inventory
