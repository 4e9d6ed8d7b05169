#include <gtest/gtest.h>

#include "acs_host.hpp"

namespace vfpass::doctor {
namespace {

// Its ports have settings of their own, which the argument would undo.
TEST_F(AcsTest, LeavesPortsOfDirectNicAlone) {
  fitForGuests();
  file(gpuPort, "config", acs(0x15));
  EXPECT_EQ(outcome("acs"), Outcome::failed);
  const auto dma = builder.function(FunctionRole::other, "0000:04:00.1", 0, gpuPort);
  function(dma).path = "dma";
  function(dma).vendor = 0x15b3;
  function(dma).device = 0x2100;
  function(dma).iommuGroup = function(gpu).iommuGroup;
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  EXPECT_THAT(finding("acs").seen, testing::StartsWith("not judged here: use rdma_topo"));
  EXPECT_EQ(finding("acs").remedy, "rdma_topo check");
}

/// A GPU of GB300 with its Direct NIC, and the ConnectX-8 in another segment, in the shape and with
/// the settings that rdma_topo requires.
class DirectNic : public testing::Test {
 protected:
  DirectNic() {
    host.builder.topology = {};
    host.requirements = {};
    const auto first = host.builder.hostBridge("pci0000:00", 0);
    const auto second = host.builder.hostBridge("pci0002:00", 0);
    nicRoot = port(FunctionRole::rootPort, "0000:00:00.0", first, {}, 0x1d);
    const auto nicUp = port(FunctionRole::upstreamPort, "0000:01:00.0", first, nicRoot, {});
    const auto nicDown = port(FunctionRole::downstreamPort, "0000:02:00.0", first, nicUp, 0x1d);
    host.pf = host.builder.pf("0000:03:00.0", "mlx5_0", first, nicDown);
    root = port(FunctionRole::rootPort, "0002:00:00.0", second, {}, 0x1c);
    const auto up = port(FunctionRole::upstreamPort, "0002:01:00.0", second, root, {});
    dmaPort = port(FunctionRole::downstreamPort, "0002:02:00.0", second, up, 0x19);
    gpuPort = port(FunctionRole::downstreamPort, "0002:02:01.0", second, up, 0x15);
    dma = host.builder.function(FunctionRole::other, "0002:03:00.0", second, dmaPort);
    host.function(dma).vendor = 0x15b3;
    host.function(dma).device = 0x2100;
    const auto inner = port(FunctionRole::upstreamPort, "0002:04:00.0", second, gpuPort, {});
    const auto last = port(FunctionRole::downstreamPort, "0002:05:00.0", second, inner, 0x1d);
    host.gpu = host.builder.gpu("0002:06:00.0", second, last);
    unsigned group = 20;
    for (const std::size_t number : {host.pf, dma, host.gpu}) {
      host.function(number).path = toString(host.function(number).address);
      host.function(number).iommuGroup = group++;
    }
    host.function(host.gpu).iommuGroup = host.function(dma).iommuGroup;
  }

  std::size_t port(FunctionRole role, const std::string& address, std::size_t bridge,
                   std::optional<std::size_t> parent, std::optional<unsigned> enabled) {
    const auto number = host.builder.function(role, address, bridge, parent);
    const bool isRoot = role == FunctionRole::rootPort;
    host.function(number).vendor = isRoot ? 0x10de : 0x15b3;
    host.function(number).device = isRoot ? 0x22b2 : 0x197c;
    host.function(number).path = address;
    if (enabled) {
      host.file(number, "config", acs(*enabled));
    }
    return number;
  }

  DoctoredHost host;
  std::size_t nicRoot = 0;
  std::size_t root = 0;
  std::size_t dmaPort = 0;
  std::size_t gpuPort = 0;
  std::size_t dma = 0;
};

TEST_F(DirectNic, PassesAsRdmaTopoRequires) {
  EXPECT_EQ(host.outcome("acs"), Outcome::passed);
  EXPECT_THAT(host.finding("acs").seen, testing::HasSubstr("0002:02:00.0 0011001"));
}

TEST_F(DirectNic, IsNeverAFailure) {
  for (const std::size_t number : {nicRoot, root, dmaPort, gpuPort}) {
    for (unsigned bits = 0; bits < 0x80; ++bits) {
      host.file(number, "config", acs(bits));
      const Finding found = host.finding("acs");
      EXPECT_TRUE(found.outcome == Outcome::passed || found.outcome == Outcome::notObservable);
      EXPECT_THAT(found.remedy, testing::AnyOf("", "rdma_topo check"));
    }
    host.file(number, "config",
              acs(number == nicRoot   ? 0x1d
                  : number == root    ? 0x1c
                  : number == dmaPort ? 0x19
                                      : 0x15));
  }
  host.file(dmaPort, "config", acs(0x1d));
  EXPECT_EQ(host.finding("acs").seen,
            "not judged here: use rdma_topo; 0002:02:00.0 0011101 for xx110x1");
}

TEST_F(DirectNic, IsNotJudgedInAnotherShape) {
  host.function(root).device = 0x1234;
  EXPECT_EQ(host.outcome("acs"), Outcome::notObservable);
  EXPECT_THAT(host.finding("acs").seen, testing::StartsWith("not judged here: use rdma_topo ("));
}

TEST_F(DirectNic, IsInOneGroupWithItsGpu) {
  host.file("sys/kernel/iommu_groups/21/type", "DMA\n");
  EXPECT_EQ(host.finding("iommu-group").outcome, Outcome::warning);
  EXPECT_THAT(host.finding("iommu-group").remedy, testing::StartsWith("list 0002:03:00.0 under"));
  host.function(host.gpu).iommuGroup = 99;
  EXPECT_EQ(host.finding("iommu-group").outcome, Outcome::warning);
  EXPECT_EQ(host.finding("iommu-group").seen, "not with 0002:03:00.0");
  EXPECT_EQ(host.finding("iommu-group").remedy, "rdma_topo check");
  host.function(host.gpu).iommuGroup = host.function(dma).iommuGroup;
  host.function(host.pf).iommuGroup = host.function(dma).iommuGroup;
  EXPECT_EQ(host.finding("iommu-group").outcome, Outcome::failed);
}

}  // namespace
}  // namespace vfpass::doctor
