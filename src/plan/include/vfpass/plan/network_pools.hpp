#pragma once

#include <string_view>
#include <vector>

#include "vfpass/network_pool.hpp"

namespace vfpass::plan {

/// The first pool that has the function; `pfNetdev` is its PF's netdev, empty for what is no VF.
const NetworkPool* findPool(const std::vector<NetworkPool>& pools, const PciAddress& function,
                            std::string_view pfNetdev);

}  // namespace vfpass::plan
