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

bool isDirectNicDma(const Device& function) {
  constexpr std::uint16_t directNicDma = 0x2100;
  return function.vendor == mellanox && function.device == directNicDma;
}

bool isPf(const Device& function) {
  return function.role == FunctionRole::nic && !function.physicalFunction &&
         (function.totalVfs > 0 || !function.rdma.empty() || !function.entry.empty());
}

bool isRdmaCapable(const Device& pf) {
  return isPf(pf) && (!pf.rdma.empty() || pf.vendor == mellanox || pf.driver == "mlx5_core" ||
                      pf.driver == "mlx4_core");
}

LinkLayer linkTypeOf(const Device& nic) {
  constexpr std::uint32_t ethernetController = 0x0200;
  constexpr std::uint32_t infinibandController = 0x0207;
  if (nic.linkLayer != LinkLayer::unknown) {
    return nic.linkLayer;
  }
  for (const RdmaDevice& device : nic.rdma) {
    for (const RdmaPort& port : device.ports) {
      if (port.linkLayer != LinkLayer::unknown) {
        return port.linkLayer;
      }
    }
  }
  const std::uint32_t subclass = nic.classCode >> 8U;
  return subclass == infinibandController ? LinkLayer::infiniband
         : subclass == ethernetController ? LinkLayer::ethernet
                                          : LinkLayer::unknown;
}

NicKind kindOf(const Device& nic) { return {nic.vendor, linkTypeOf(nic)}; }

}  // namespace vfpass
