#pragma once

#include <string_view>
#include <vector>

#include "vfpass/network_pool.hpp"

namespace vfpass::plan {

/// The first pool that contains the function; nullptr if none does. `pfNetdev`: the netdev of its
/// PF, empty if the function is not a VF.
const NetworkPool* findPool(const std::vector<NetworkPool>& pools, const PciAddress& function,
                            std::string_view pfNetdev);

}  // namespace vfpass::plan
