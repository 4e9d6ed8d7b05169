#include "vfpass/topology.hpp"

#include <algorithm>

#include "vfpass/mlx5_firmware.hpp"

namespace vfpass {
const Device* findFunction(const Topology& topology, const PciAddress& address) {
  const auto found = std::lower_bound(
      topology.functions.begin(), topology.functions.end(), address,
      [](const Device& function, const PciAddress& at) { return function.address < at; });
  return found != topology.functions.end() && found->address == address ? &*found : nullptr;
}

bool isPf(const Device& function) {
  return function.role == FunctionRole::nic && !function.physicalFunction &&
         (function.totalVfs > 0 || !function.rdma.empty() || !function.entry.empty());
}

bool isRdmaCapable(const Device& pf) {
  return isPf(pf) && (!pf.rdma.empty() || pf.vendor == mellanox || pf.driver == "mlx5_core" ||
                      pf.driver == "mlx4_core");
}

}  // namespace vfpass
