#include "vfpass/plan/network_pools.hpp"

#include <algorithm>

namespace vfpass::plan {

const NetworkPool* findPool(const std::vector<NetworkPool>& pools, const PciAddress& function,
                            std::string_view pfNetdev) {
  const auto found = std::find_if(pools.begin(), pools.end(), [&](const NetworkPool& pool) {
    const auto& netdevs = pool.pfNetdevs;
    return std::find(pool.devices.begin(), pool.devices.end(), function) != pool.devices.end() ||
           (!pfNetdev.empty() &&
            std::find(netdevs.begin(), netdevs.end(), pfNetdev) != netdevs.end());
  });
  return found == pools.end() ? nullptr : &*found;
}

}  // namespace vfpass::plan
