#include "vfpass/topology/distance.hpp"

#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"

namespace vfpass::topology {
namespace {

using Role = FunctionRole;

// A switch with a GPU and a NIC below it, a second one below the same root port's switch, a GPU at
// a root port, and one behind another host bridge of the same and of another node.
struct NestedSwitches : hosts::TopologyBuilder {
  NestedSwitches() {
    const auto one = hostBridge("pci0000:00", 0);
    const auto two = hostBridge("pci0000:40", 0);
    const auto far = hostBridge("pci0000:80", 1);
    const auto port = function(Role::rootPort, "0000:00:01.0", one);
    const auto otherPort = function(Role::rootPort, "0000:00:02.0", one);
    const auto up = function(Role::upstreamPort, "0000:01:00.0", one, port);
    const auto down = function(Role::downstreamPort, "0000:02:00.0", one, up);
    const auto second = function(Role::downstreamPort, "0000:02:01.0", one, up);
    const auto third = function(Role::downstreamPort, "0000:02:02.0", one, up);
    gpuBelow = gpu("0000:03:00.0", one, down);
    nicBelow = pf("0000:04:00.0", "mlx5_0", one, second);
    nicBeside = pf("0000:04:00.1", "mlx5_1", one, second);
    innerUp = function(Role::upstreamPort, "0000:05:00.0", one, third);
    innerDown = function(Role::downstreamPort, "0000:06:00.0", one, innerUp);
    deeper = pf("0000:07:00.0", "mlx5_2", one, innerDown);
    atPort = gpu("0000:10:00.0", one, otherPort);
    sameNode = pf("0000:41:00.0", "mlx5_3", two);
    otherNode = pf("0000:81:00.0", "mlx5_4", far);
  }
  std::size_t gpuBelow, nicBelow, nicBeside, innerUp, innerDown, deeper, atPort, sameNode,
      otherNode;

  [[nodiscard]] std::string between(std::size_t one, std::size_t two) const {
    EXPECT_EQ(distance(topology, one, two), distance(topology, two, one));
    return std::string(toString(distance(topology, one, two)));
  }
};

TEST(Distance, UsesTermsOfNvidiaSmi) {
  const NestedSwitches machine;
  EXPECT_EQ(machine.between(machine.gpuBelow, machine.gpuBelow), "X");
  EXPECT_EQ(machine.between(machine.gpuBelow, machine.nicBelow), "PIX");
  EXPECT_EQ(machine.between(machine.nicBelow, machine.nicBeside), "PIX");
  EXPECT_EQ(machine.between(machine.gpuBelow, machine.deeper), "PXB");
  EXPECT_EQ(machine.between(machine.gpuBelow, machine.atPort), "PHB");
  EXPECT_EQ(machine.between(machine.gpuBelow, machine.sameNode), "NODE");
  EXPECT_EQ(machine.between(machine.gpuBelow, machine.otherNode), "SYS");
}

TEST(Distance, FunctionsOfOneSlotAreOneBridgeApart) {
  hosts::TopologyBuilder machine;
  const auto bridge = machine.hostBridge("pci0000:00", -1);
  const auto port = machine.function(Role::rootPort, "0000:00:01.0", bridge);
  const auto gpu = machine.gpu("0000:01:00.0", bridge, port);
  const auto nic = machine.pf("0000:01:00.1", "mlx5_0", bridge, port);
  EXPECT_EQ(distance(machine.topology, gpu, nic), Distance::pix);
}

TEST(Distance, TreatsUnknownNodesAsOneOnSingleNodeHost) {
  hosts::TopologyBuilder machine;
  const auto gpu = machine.gpu("0000:01:00.0", machine.hostBridge("pci0000:00", -1));
  const auto nic = machine.pf("0000:81:00.0", "mlx5_0", machine.hostBridge("pci0000:80", -1));
  EXPECT_EQ(distance(machine.topology, gpu, nic), Distance::node);
  machine.topology.processors.nodes = {{0, "1"}, {1, "2"}};
  EXPECT_EQ(distance(machine.topology, gpu, nic), Distance::sys);
}

TEST(Distance, MergesNestedSwitchesOfOnePexChip) {
  NestedSwitches machine;
  const auto outer =
      *machine.topology.functions[*machine.topology.functions[machine.innerUp].parent].parent;
  for (const auto& [number, subsystem] : {std::pair(outer, 0x0072), {machine.innerUp, 0x1003}}) {
    Device& port = machine.topology.functions[number];
    port.vendor = port.subsystemVendor = 0x1000;
    port.device = 0xc030;
    port.subsystemDevice = static_cast<std::uint16_t>(subsystem);
  }
  EXPECT_EQ(machine.between(machine.gpuBelow, machine.deeper), "PIX");
  EXPECT_EQ(switchOf(machine.topology, machine.innerDown), outer);
  machine.topology.functions[machine.innerUp].subsystemDevice = 0x0072;
  EXPECT_EQ(machine.between(machine.gpuBelow, machine.deeper), "PXB") << "two chips";
}

}  // namespace
}  // namespace vfpass::topology
