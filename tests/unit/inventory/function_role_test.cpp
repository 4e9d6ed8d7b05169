#include "read_pci_function.hpp"

#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"

namespace vfpass::inventory {
namespace {

// QEMU allows a pcie-root-port below an x3130-upstream, and it identifies itself as a root port.
TEST(GuessPorts, RootPortBelowAnUpstreamPortIsADownstreamPort) {
  hosts::TopologyBuilder host;
  const auto bridge = host.hostBridge("pci0000:00", 0);
  const auto root = host.function(FunctionRole::rootPort, "0000:00:01.0", bridge);
  const auto upstream = host.function(FunctionRole::upstreamPort, "0000:01:00.0", bridge, root);
  const auto below = host.function(FunctionRole::rootPort, "0000:02:00.0", bridge, upstream);
  const auto beside = host.function(FunctionRole::bridge, "0000:02:01.0", bridge, upstream);
  std::string path;
  for (auto& function : host.topology.functions) {
    function.path = path += "/" + toString(function.address);
  }
  guessPorts(host.topology);
  EXPECT_EQ(host.topology.functions[root].role, FunctionRole::rootPort);
  EXPECT_EQ(host.topology.functions[below].role, FunctionRole::downstreamPort);
  EXPECT_EQ(host.topology.functions[beside].role, FunctionRole::downstreamPort);
}

}  // namespace
}  // namespace vfpass::inventory
