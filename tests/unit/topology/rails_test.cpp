#include "vfpass/topology/nearest_pf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"

namespace vfpass::topology {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Rails, DistributesGpusAmongEqualPfs) {
  hosts::TopologyBuilder machine;
  const auto bridge = machine.hostBridge("pci0000:00", 0);
  const auto gpu0 = machine.gpu("0000:01:00.0", bridge);
  const auto gpu1 = machine.gpu("0000:02:00.0", bridge);
  const auto nic0 = machine.pf("0000:03:00.0", "mlx5_0", bridge);
  const auto nic1 = machine.pf("0000:04:00.0", "mlx5_1", bridge);
  const auto found = rails(machine.topology);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].gpu, gpu0);
  EXPECT_EQ(found[0].pf, nic0);
  EXPECT_THAT(found[0].alike, ElementsAre(nic1));
  EXPECT_EQ(found[1].gpu, gpu1);
  EXPECT_EQ(found[1].pf, nic1);
}

TEST(Rails, GpuWithFewestCandidatesChoosesFirst) {
  hosts::TopologyBuilder machine;
  const auto far = machine.hostBridge("pci0000:00", 0);
  const auto near = machine.hostBridge("pci0000:80", 0);
  const auto port = machine.function(FunctionRole::rootPort, "0000:80:01.0", near);
  static_cast<void>(machine.gpu("0000:01:00.0", far));
  static_cast<void>(machine.gpu("0000:81:00.0", near, port));
  const auto only = machine.pf("0000:81:00.1", "mlx5_0", near, port);
  const auto other = machine.pf("0000:90:00.0", "mlx5_1", near);
  const auto found = rails(machine.topology);
  EXPECT_EQ(found[0].pf, other);
  EXPECT_EQ(found[1].pf, only);
  EXPECT_EQ(found[1].distance, Distance::pix);
}

TEST(Rails, PrefersPfWithActivePort) {
  hosts::TopologyBuilder machine;
  const auto bridge = machine.hostBridge("pci0000:00", 0);
  static_cast<void>(machine.gpu("0000:01:00.0", bridge));
  const auto down = machine.pf("0000:03:00.0", "mlx5_0", bridge);
  const auto active = machine.pf("0000:04:00.0", "mlx5_1", bridge);
  machine.topology.functions[down].rdma[0].ports[0].state = "DOWN";
  EXPECT_EQ(rails(machine.topology)[0].pf, active);
}

// A management NIC with SR-IOV is beside the GPU, the ConnectX below another host bridge.
TEST(Rails, SkipsNicWithoutRdma) {
  hosts::TopologyBuilder machine;
  const auto near = machine.hostBridge("pci0000:00", 0);
  const auto far = machine.hostBridge("pci0000:80", 0);
  static_cast<void>(machine.gpu("0000:01:00.0", near));
  const auto management = machine.pf("0000:02:00.0", "none", near);
  machine.topology.functions[management].rdma.clear();
  machine.topology.functions[management].vendor = 0x8086;
  machine.topology.functions[management].driver = "ixgbe";
  const auto connectx = machine.pf("0000:81:00.0", "mlx5_0", far);
  const auto found = rails(machine.topology);
  EXPECT_EQ(found[0].pf, connectx);
  EXPECT_THAT(found[0].alike, IsEmpty());
  EXPECT_EQ(rails(machine.topology, {0}, {management})[0].pf, std::nullopt);
}

TEST(Rails, AcceptsConnectXWithoutRdmaModule) {
  hosts::TopologyBuilder machine;
  const auto bridge = machine.hostBridge("pci0000:00", 0);
  static_cast<void>(machine.gpu("0000:01:00.0", bridge));
  const auto connectx = machine.pf("0000:02:00.0", "none", bridge);
  machine.topology.functions[connectx].rdma.clear();
  EXPECT_EQ(rails(machine.topology)[0].pf, connectx);
}

// The slow PF has the lower address, but two GPUs still share the fast one.
TEST(Rails, PrefersFasterPf) {
  hosts::TopologyBuilder machine;
  const auto bridge = machine.hostBridge("pci0000:00", 0);
  static_cast<void>(machine.gpu("0000:01:00.0", bridge));
  static_cast<void>(machine.gpu("0000:02:00.0", bridge));
  const auto slow = machine.pf("0000:03:00.0", "mlx5_0", bridge);
  const auto fast = machine.pf("0000:04:00.0", "mlx5_1", bridge);
  machine.topology.functions[slow].rdma[0].ports[0].rate = 25000;
  const auto found = rails(machine.topology);
  EXPECT_EQ(found[0].pf, fast);
  EXPECT_EQ(found[1].pf, fast) << "half of 400 Gb/s is more than 25 Gb/s";
  machine.topology.functions[slow].rdma[0].ports[0].rate = 400000;
  machine.topology.functions[fast].best = {8000, 8};
  EXPECT_EQ(rails(machine.topology)[0].pf, slow) << "the other one's PCIe link is slower";
}

TEST(Rails, HostWithoutPfsHasRailsWithoutPfs) {
  hosts::TopologyBuilder machine;
  const auto bridge = machine.hostBridge("pci0000:00", 0);
  static_cast<void>(machine.gpu("0000:01:00.0", bridge));
  static_cast<void>(machine.function(FunctionRole::nic, "0000:02:00.0", bridge));  // no SR-IOV
  const auto found = rails(machine.topology);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].pf);
  EXPECT_THAT(found[0].alike, IsEmpty());
}

TEST(Rails, IgnoresVfsOfGpus) {
  hosts::TopologyBuilder machine;
  const auto bridge = machine.hostBridge("pci0000:00", 0);
  const auto gpu = machine.gpu("0000:01:00.0", bridge);
  const auto vf = machine.gpu("0000:01:00.4", bridge);
  machine.topology.functions[vf].physicalFunction = machine.topology.functions[gpu].address;
  EXPECT_THAT(gpus(machine.topology), ElementsAre(gpu));
}

}  // namespace
}  // namespace vfpass::topology
