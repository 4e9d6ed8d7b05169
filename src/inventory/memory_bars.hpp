#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "vfpass/host_capacity.hpp"

namespace vfpass::inventory {

/// Memory BARs in the text of a function's `resource` file, which has a line `start end flags` for
/// each resource: `count` of them from line `first` on. Unused ones are left out.
std::vector<MemoryBar> memoryBars(std::string_view resource, std::size_t first, std::size_t count);

/// The same of one VF: the PF's lines for VFs hold `totalVfs` BARs each.
std::vector<MemoryBar> vfMemoryBars(std::string_view resource, unsigned totalVfs);

}  // namespace vfpass::inventory
