#include "vfpass/topology/pcie_link.hpp"

#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"

namespace vfpass::topology {
namespace {

constexpr PcieLink gen1{2500, 16};
constexpr PcieLink gen2{5000, 16};
constexpr PcieLink gen3{8000, 16};
constexpr PcieLink gen4{16000, 16};
constexpr PcieLink gen5{32000, 16};

/// A GPU and a NIC below one switch, a second NIC at a root port of its own; every link is Gen5.
class PcieLinkTest : public testing::Test {
 protected:
  PcieLinkTest() {
    const auto bridge = builder.hostBridge("pci0000:00", 0);
    rootPort = builder.function(FunctionRole::rootPort, "0000:00:01.0", bridge);
    uplink = builder.function(FunctionRole::upstreamPort, "0000:01:00.0", bridge, rootPort);
    nicPort = builder.function(FunctionRole::downstreamPort, "0000:02:00.0", bridge, uplink);
    gpuPort = builder.function(FunctionRole::downstreamPort, "0000:02:01.0", bridge, uplink);
    nic = builder.pf("0000:03:00.0", "mlx5_0", bridge, nicPort);
    gpu = builder.gpu("0000:04:00.0", bridge, gpuPort);
    otherPort = builder.function(FunctionRole::rootPort, "0000:00:02.0", bridge);
    other = builder.pf("0000:05:00.0", "mlx5_1", bridge, otherPort);
    for (Device& function : builder.topology.functions) {
      function.link = function.best = gen5;
    }
  }

  Device& at(std::size_t number) { return builder.topology.functions[number]; }
  [[nodiscard]] LinkState state(std::size_t number) const {
    return linkAbove(builder.topology, number).state;
  }

  hosts::TopologyBuilder builder;
  std::size_t rootPort = 0, uplink = 0, nicPort = 0, gpuPort = 0, nic = 0, gpu = 0, otherPort = 0,
              other = 0;
};

TEST_F(PcieLinkTest, ComparesWithWhatBothEndsCanDo) {
  EXPECT_EQ(state(nic), LinkState::full);
  at(nic).link = {8000, 4};
  EXPECT_EQ(state(nic), LinkState::degraded);
  EXPECT_EQ(linkAbove(builder.topology, nic).share, 1.0 / 16);
  at(nicPort).best = {8000, 4};
  EXPECT_EQ(state(nic), LinkState::full) << "the slot allows no more";
  EXPECT_TRUE(isLimitedBySlot(builder.topology, linkAbove(builder.topology, nic)));
  at(nicPort).best = {};
  EXPECT_EQ(state(nic), LinkState::degraded) << "the port is not observable";
  at(nic).link = {};
  EXPECT_EQ(state(nic), LinkState::unknown);
}

TEST_F(PcieLinkTest, UplinkIsComparedWithTheLinksBelow) {
  const auto narrow = [&] { return isNarrowerThanBelow(builder.topology, uplink, {nic, gpu}); };
  EXPECT_FALSE(narrow());
  at(rootPort).best = at(uplink).link = gen4;
  EXPECT_TRUE(narrow());
  at(nic).best = at(nic).link = at(gpu).best = at(gpu).link = gen4;
  EXPECT_FALSE(narrow()) << "nothing below is faster";
  at(gpu).best = at(gpu).link = gen5;
  at(rootPort).best = at(uplink).link = at(uplink).best = {};
  EXPECT_FALSE(narrow()) << "the uplink is not observable";
}

TEST_F(PcieLinkTest, GpuLowersItsSpeedWhileIdleButNotItsWidth) {
  at(gpu).link = at(gpuPort).link = gen1;
  EXPECT_EQ(state(gpu), LinkState::idle);
  EXPECT_EQ(state(gpuPort), LinkState::unknown) << "the port has no link of its own";
  at(gpu).link.width = 8;
  EXPECT_EQ(state(gpu), LinkState::degraded);
  EXPECT_EQ(linkAbove(builder.topology, gpu).share, 0.5);
}

TEST_F(PcieLinkTest, SwitchOnGpuLowersItsSpeedWithTheGpu) {
  for (const auto function : {uplink, nicPort, gpuPort, gpu, nic}) {
    at(function).vendor = 0x1002;
  }
  at(uplink).link = gen1;
  EXPECT_EQ(state(uplink), LinkState::degraded) << "a NIC below";
  at(nic).role = FunctionRole::other;  // the card's audio function
  EXPECT_EQ(state(uplink), LinkState::idle);
  at(uplink).link.width = 8;
  EXPECT_EQ(linkAbove(builder.topology, uplink).share, 0.5);
  at(uplink).link = gen1;
  at(gpu).vendor = 0x10de;
  EXPECT_EQ(state(uplink), LinkState::degraded) << "a device of another vendor below";
  for (const auto function : {uplink, nicPort, gpuPort, nic}) {
    at(function).vendor = 0x10de;
  }
  EXPECT_EQ(state(uplink), LinkState::degraded) << "no GPU of this vendor has a switch";
}

TEST_F(PcieLinkTest, EmulatedPortThatReportsLessDoesNotLimit) {
  at(otherPort).best = {2500, 1};
  EXPECT_EQ(state(other), LinkState::full);
  EXPECT_EQ(linkAbove(builder.topology, other).possible, gen5);
}

TEST_F(PcieLinkTest, DegradedUplinkIsOnThePathOfEveryDeviceBelow) {
  at(uplink).link = {32000, 8};
  EXPECT_EQ(state(uplink), LinkState::degraded);
  const auto links = linksAbove(builder.topology, gpu);
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[1].function, uplink);
  EXPECT_EQ(linksAbove(builder.topology, other).size(), 1U);
}

// Without root the kernel's files tell the link but not the type of a port.
TEST_F(PcieLinkTest, FindsUplinkByItsPlaceIfTypesOfPortsAreUnknown) {
  for (const auto port : {rootPort, uplink, nicPort, gpuPort, otherPort}) {
    at(port).role = FunctionRole::bridge;
  }
  at(uplink).link = gen3;
  at(gpu).link = at(gpuPort).link = gen1;
  EXPECT_EQ(state(uplink), LinkState::degraded);
  EXPECT_EQ(state(gpuPort), LinkState::unknown);
  EXPECT_EQ(linksAbove(builder.topology, gpu).size(), 2U);
}

TEST_F(PcieLinkTest, UplinkOfVirtualSwitchIsSynthetic) {
  for (const PcieLink& reported : {gen1, gen2, gen3}) {
    at(uplink).best = at(uplink).link = reported;
    EXPECT_EQ(state(uplink), LinkState::synthetic) << reported.speed;
  }
  at(uplink).link = {2500, 1};
  EXPECT_EQ(state(uplink), LinkState::synthetic) << "nothing that it reports counts";
  at(uplink).best = at(uplink).link = gen4;
  EXPECT_EQ(state(uplink), LinkState::full) << "one generation less is a real port";
  at(uplink).best = gen5;
  at(uplink).link = gen2;
  EXPECT_EQ(state(uplink), LinkState::degraded) << "it can do more: a real link that is slow";
}

TEST_F(PcieLinkTest, RealSwitchOfAnOldHostIsNotSynthetic) {
  at(rootPort).best = at(uplink).link = gen3;
  EXPECT_EQ(state(uplink), LinkState::full) << "a new switch in an old host";
  at(rootPort).best = at(uplink).link = gen2;
  EXPECT_EQ(state(uplink), LinkState::synthetic) << "no host with such a switch is that old";
  for (const auto port : {uplink, nicPort, gpuPort}) {
    at(port).best = gen2;
  }
  EXPECT_EQ(state(uplink), LinkState::full) << "an old switch above new devices";
}

TEST_F(PcieLinkTest, NarrowestIsThatOfWhatThePathCanDo) {
  at(nic).link = {8000, 4};
  at(uplink).best = at(rootPort).best = {16000, 8};
  const auto common = commonBridge(builder.topology, nic, gpu);
  EXPECT_EQ(common, uplink);
  EXPECT_EQ(commonBridge(builder.topology, nic, other), std::nullopt);
  EXPECT_EQ(narrowest(linksAbove(builder.topology, nic)), (PcieLink{32000, 16}))
      << "an uplink that runs at more than it says it can";
  at(uplink).link = {16000, 8};
  EXPECT_EQ(narrowest(linksAbove(builder.topology, nic)), (PcieLink{16000, 8}));
  EXPECT_EQ(narrowest(linksAbove(builder.topology, nic, common)), gen5)
      << "a pair below one switch does not use its uplink";
  at(uplink).best = at(uplink).link = gen2;
  EXPECT_EQ(narrowest(linksAbove(builder.topology, nic)), gen5) << "synthetic";
  EXPECT_EQ(narrowest({}), PcieLink{});
}

TEST_F(PcieLinkTest, VfHasTheLinkOfItsPf) {
  const auto vf = builder.function(FunctionRole::nic, "0000:03:00.1", 0, nicPort);
  at(vf).physicalFunction = at(nic).address;
  at(nic).link = gen3;
  const auto sorted = builder.sorted();
  for (std::size_t number = 0; number < sorted.functions.size(); ++number) {
    if (sorted.functions[number].physicalFunction) {
      EXPECT_EQ(linkAbove(sorted, number).state, LinkState::degraded);
    }
  }
}

}  // namespace
}  // namespace vfpass::topology
