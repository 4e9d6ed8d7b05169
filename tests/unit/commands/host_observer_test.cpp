#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host_observer.hpp"
#include "hosts/sysfs_tree.hpp"
#include "hosts/topology_builder.hpp"
#include "unit/values.hpp"

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// A host with one NIC, one GPU below its switch and one in the other socket; both GPUs and a VF
/// are leased. In the guest, `gpu0` is behind the root port with index 2.
class LeasedGpusTest : public testing::Test {
 protected:
  LeasedGpusTest() {
    const auto near = builder.hostBridge("pci0000:00", 0);
    const auto far = builder.hostBridge("pci0000:80", 1);
    builder.pf("0000:01:00.0", "mlx5_0", near);
    builder.gpu("0000:02:00.0", near);
    builder.gpu("0000:81:00.0", far);
    machine.machine = "pc-q35-7.2";
    machine.controllers.resize(2);
    machine.controllers[0].model = "pcie-root";
    machine.controllers[1].index = 2;
    machine.controllers[1].model = "pcie-root-port";
    machine.controllers[1].address = at("0000:00:04.0");
    machine.passed = {{at("0000:02:00.0"), at("0000:02:00.0"), "gpu0"}};
    leases = {function("gpu0", "0000:02:00.0"), function("gpu1", "0000:81:00.0"), vf()};
  }

  static Lease function(const std::string& entry, const char* address) {
    Lease lease;
    lease.part = LeasedFunction{};
    lease.entry = entry;
    lease.pf = lease.device = at(address);
    lease.state = LeaseState::running;
    return lease;
  }
  static Lease vf() {
    Lease lease;
    lease.entry = "rail0";
    lease.pf = at("0000:01:00.0");
    lease.device = at("0000:01:00.2");
    lease.state = LeaseState::running;
    return lease;
  }

  hosts::TopologyBuilder builder;
  GuestMachine machine;
  std::vector<Lease> leases;
};

TEST_F(LeasedGpusTest, HasPlaceInGuestAndDistanceToEachVf) {
  const auto gpus = leasedGpus(leases, machine, builder.topology);
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].entry, "gpu0");
  EXPECT_THAT(gpus[0].guestPath, ElementsAre(at("0000:00:04.0"), at("0000:02:00.0")));
  EXPECT_EQ(gpus[0].paths.at("rail0").distance, "PHB");
  EXPECT_EQ(gpus[1].paths.at("rail0").distance, "SYS");
  EXPECT_THAT(gpus[1].guestPath, IsEmpty()) << "not in the domain XML";
}

TEST_F(LeasedGpusTest, LinkOfVfIsThatOfItsPf) {
  for (Device& each : builder.topology.functions) {
    each.best = each.role == FunctionRole::gpu ? PcieLink{32000, 16} : PcieLink{16000, 8};
  }
  leases.push_back(function("lost", "0000:99:00.0"));
  EXPECT_THAT(
      linksAboveLeased(leases, builder.topology),
      UnorderedElementsAre(Pair("gpu0", PcieLink{32000, 16}), Pair("gpu1", PcieLink{32000, 16}),
                           Pair("rail0", PcieLink{16000, 8})));
}

// A Gen5 switch with NIC and GPU, whose uplink has half of the lanes.
TEST(LeasedGpusOfOneSwitchTest, UplinkDoesNotLimitPairBelowIt) {
  constexpr PcieLink gen5{32000, 16};
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  const auto port = builder.function(FunctionRole::rootPort, "0000:00:01.0", bridge);
  const auto uplink = builder.function(FunctionRole::upstreamPort, "0000:01:00.0", bridge, port);
  const auto left = builder.function(FunctionRole::downstreamPort, "0000:02:00.0", bridge, uplink);
  const auto right = builder.function(FunctionRole::downstreamPort, "0000:02:01.0", bridge, uplink);
  const auto nic = builder.pf("0000:03:00.0", "mlx5_0", bridge, left);
  const auto gpu = builder.gpu("0000:04:00.0", bridge, right);
  for (Device& function : builder.topology.functions) {
    function.link = function.best = gen5;
  }
  builder.topology.functions[uplink].best = {32000, 8};
  builder.topology.functions[uplink].link = {32000, 8};
  builder.topology.functions[nic].link = {8000, 4};
  builder.topology.functions[gpu].link = {2500, 8};
  Lease vf;
  vf.entry = "rail0";
  vf.pf = at("0000:03:00.0");
  vf.device = at("0000:03:00.2");
  Lease function;
  function.part = LeasedFunction{};
  function.entry = "gpu0";
  function.pf = function.device = at("0000:04:00.0");
  vf.state = function.state = LeaseState::running;
  const auto gpus = leasedGpus({vf, function}, {}, builder.topology);
  ASSERT_THAT(gpus, SizeIs(1));
  const auto& path = gpus[0].paths.at("rail0");
  EXPECT_EQ(path.link, gen5) << "what the GPU's link can do, not what it does";
  EXPECT_EQ(path.nic, gen5);
  EXPECT_EQ(path.degraded, "the link of 0000:04:00.0 runs at Gen1 x8 of Gen5 x16");
}

TEST_F(LeasedGpusTest, LeavesOutFunctionsThatAreNoGpuOrNotRunning) {
  leases[0].state = LeaseState::reserved;
  leases[1].device = leases[1].pf = at("0000:01:00.0");
  EXPECT_THAT(leasedGpus(leases, machine, builder.topology), IsEmpty());
}

TEST_F(LeasedGpusTest, PlacementComesFromRunningDomainAndNodesOfDevices) {
  auto& nodes = builder.topology.processors.nodes;
  nodes = {{0, "0000000f"}, {1, "000000f0"}};
  const auto open = placementOf(leases, "<domain><vcpu>4</vcpu></domain>", builder.topology);
  EXPECT_EQ(open.hostNodes, 2U);
  ASSERT_THAT(open.devices, SizeIs(3));
  EXPECT_EQ(open.devices[1].entry, "gpu1");
  EXPECT_EQ(open.devices[1].node, 1U);
  EXPECT_EQ(open.devices[2].node, 0U) << "of the VF's PF";
  EXPECT_FALSE(open.vcpuNodes || open.memoryNodes || open.guestCells);
  const auto pinned = placementOf(
      leases,
      "<domain><vcpu cpuset='4-6'>4</vcpu><cputune><vcpupin vcpu='0' cpuset='4-5'/></cputune>"
      "<numatune><memory mode='strict' nodeset='0'/></numatune>"
      "<cpu><numa><cell id='0' cpus='0-3' memory='4' unit='GiB'/></numa></cpu></domain>",
      builder.topology);
  EXPECT_EQ(pinned.vcpuNodes, (std::set<unsigned>{1}));
  EXPECT_EQ(pinned.memoryNodes, (std::set<unsigned>{0}));
  EXPECT_TRUE(pinned.guestCells);
  const std::string pins =
      "<cputune><vcpupin vcpu='0' cpuset='1'/><vcpupin vcpu='1' cpuset='2'/></cputune></domain>";
  EXPECT_EQ(
      placementOf(leases, "<domain><vcpu cpuset='0-7'>2</vcpu>" + pins, builder.topology).vcpuNodes,
      (std::set<unsigned>{0}))
      << "a pin replaces the set";
  EXPECT_FALSE(placementOf(leases, "<domain><vcpu>4</vcpu>" + pins, builder.topology).vcpuNodes)
      << "two vCPUs run anywhere";
  nodes.push_back({2, "00000000"});
  EXPECT_EQ(placementOf(leases, "<domain/>", builder.topology).hostNodes, 2U) << "only memory";
  EXPECT_TRUE(
      placementOf(leases, "<domain><vcpu placement='auto'>4</vcpu></domain>", builder.topology)
          .automatic);
  leases[1].state = LeaseState::reserved;
  EXPECT_THAT(placementOf(leases, "<domain/>", builder.topology).devices, SizeIs(2));
}

/// A NIC and a GPU below one root port, and a GPU elsewhere.
class PacketsOfTest : public testing::Test {
 protected:
  PacketsOfTest() {
    functions.resize(4);
    const char* paths[] = {"a", "a/nic", "a/gpu", "b"};
    for (std::size_t i = 0; i < functions.size(); ++i) {
      functions[i].path = paths[i];
    }
    functions[1].parent = functions[2].parent = 0;
  }

  // The PCI Express capability at 0x40 with the device capabilities and the device control.
  void config(std::size_t function, int supported, const char* control) {
    std::string bytes(256, '\0');
    bytes[0x06] = 0x10;
    bytes[0x34] = 0x40;
    bytes[0x40] = 0x10;
    bytes[0x44] = static_cast<char>(supported);
    bytes.replace(0x48, 2, control, 2);
    tree.file("sys/devices/" + functions[function].path + "/config", bytes);
  }
  [[nodiscard]] std::optional<verify::HostPackets> read() const {
    return packetsOf(host::Root(tree.path()), topology, 1);
  }

  hosts::SysfsTree tree;
  Topology topology;
  std::vector<Device>& functions = topology.functions;
};

TEST_F(PacketsOfTest, PayloadIsWhatAllBelowTheRootPortSupport) {
  EXPECT_FALSE(read());
  config(1, 2, "\x20\x59");
  EXPECT_EQ(read()->pf, (PciePackets{256, 512, 4096, false}));
  EXPECT_EQ(read()->payloadPossible, 512U);
  config(3, 0, "\0\0");
  EXPECT_EQ(read()->payloadPossible, 512U) << "elsewhere";
  config(2, 1, "\x20\x29");
  EXPECT_EQ(read()->payloadPossible, 256U);
  functions[2].physicalFunction = at("0000:01:00.0");
  EXPECT_EQ(read()->payloadPossible, 512U) << "VFs do not count";
  config(0, 0, "\0\0");
  EXPECT_EQ(read()->payloadPossible, 128U);
}

}  // namespace

}  // namespace vfpass::commands
