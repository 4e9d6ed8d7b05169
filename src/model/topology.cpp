#include "vfpass/topology.hpp"

#include <algorithm>

#include "names.hpp"
#include "vfpass/mlx5_firmware.hpp"

namespace vfpass {
namespace {

constexpr Names<FunctionRole, 8> roleNames{{{FunctionRole::other, "other"},
                                            {FunctionRole::gpu, "gpu"},
                                            {FunctionRole::nic, "nic"},
                                            {FunctionRole::nvswitch, "nvswitch"},
                                            {FunctionRole::rootPort, "root-port"},
                                            {FunctionRole::upstreamPort, "upstream-port"},
                                            {FunctionRole::downstreamPort, "downstream-port"},
                                            {FunctionRole::bridge, "bridge"}}};

}  // namespace

std::string_view toString(FunctionRole role) { return nameOf(roleNames, role); }

const TopologyFunction* findFunction(const Topology& topology, const PciAddress& address) {
  const auto found = std::lower_bound(
      topology.functions.begin(), topology.functions.end(), address,
      [](const TopologyFunction& function, const PciAddress& at) { return function.address < at; });
  return found != topology.functions.end() && found->address == address ? &*found : nullptr;
}

bool isBridge(const TopologyFunction& function) {
  return function.role == FunctionRole::rootPort || function.role == FunctionRole::upstreamPort ||
         function.role == FunctionRole::downstreamPort || function.role == FunctionRole::bridge;
}

bool isPf(const TopologyFunction& function) {
  return function.role == FunctionRole::nic && !function.physicalFunction &&
         (function.totalVfs > 0 || !function.rdma.empty() || !function.entry.empty());
}

bool isRdmaCapable(const TopologyFunction& pf) {
  return isPf(pf) && (!pf.rdma.empty() || pf.vendor == mellanox || pf.driver == "mlx5_core" ||
                      pf.driver == "mlx4_core");
}

}  // namespace vfpass
