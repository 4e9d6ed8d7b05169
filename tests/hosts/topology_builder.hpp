#pragma once

#include <algorithm>
#include <numeric>
#include <string>

#include "vfpass/topology.hpp"

namespace vfpass::hosts {

/// A topology made by hand, parents before children. Numbers are those of the functions as added:
/// add them in the order of their addresses, or take sorted() and no numbers.
class TopologyBuilder {
 public:
  std::size_t hostBridge(const std::string& name, int node) {
    topology.hostBridges.push_back({name, node});
    const bool known =
        std::any_of(topology.processors.nodes.begin(), topology.processors.nodes.end(),
                    [&](const NumaNode& entry) { return entry.number == node; });
    if (node >= 0 && !known) {
      topology.processors.nodes.push_back({node, node == 0 ? "0000ffff" : "ffff0000"});
    }
    return topology.hostBridges.size() - 1;
  }
  std::size_t function(FunctionRole role, const std::string& address, std::size_t bridge,
                       std::optional<std::size_t> parent = std::nullopt) {
    Device function;
    function.role = role;
    function.address = parsePciAddress(address).value();
    function.hostBridge = bridge;
    function.numaNode = topology.hostBridges[bridge].numaNode;
    function.parent = parent;
    function.classCode = role >= FunctionRole::rootPort ? 0x060400 : 0;
    topology.functions.push_back(function);
    return topology.functions.size() - 1;
  }
  std::size_t gpu(const std::string& address, std::size_t bridge,
                  std::optional<std::size_t> parent = std::nullopt) {
    const auto number = function(FunctionRole::gpu, address, bridge, parent);
    topology.functions[number].classCode = 0x030200;
    topology.functions[number].vendor = 0x10de;
    topology.functions[number].best = {32000, 16};
    return number;
  }
  /// With SR-IOV, an RDMA device of this name whose port is active, and a netdev.
  std::size_t pf(const std::string& address, const std::string& rdma, std::size_t bridge,
                 std::optional<std::size_t> parent = std::nullopt) {
    const auto number = function(FunctionRole::nic, address, bridge, parent);
    Device& pf = topology.functions[number];
    pf.classCode = 0x020000;
    pf.vendor = 0x15b3;
    pf.driver = "mlx5_core";
    pf.totalVfs = 16;
    pf.best = {32000, 16};
    pf.rdma.push_back({rdma, "", "", {{1, "ACTIVE", LinkLayer::ethernet, 400000}}});
    pf.netdevs.push_back({"net-" + rdma, static_cast<int>(number) + 1, true, false});
    return number;
  }

  /// By address, as vfpass reads them.
  [[nodiscard]] Topology sorted() const {
    std::vector<std::size_t> order(topology.functions.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [this](std::size_t one, std::size_t other) {
      return topology.functions[one].address < topology.functions[other].address;
    });
    Topology result = topology;
    for (std::size_t place = 0; place < order.size(); ++place) {
      result.functions[place] = topology.functions[order[place]];
      auto& parent = result.functions[place].parent;
      if (parent) {
        parent = static_cast<std::size_t>(std::find(order.begin(), order.end(), *parent) -
                                          order.begin());
      }
    }
    return result;
  }

  Topology topology;
};

}  // namespace vfpass::hosts
