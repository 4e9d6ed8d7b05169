#include "vfpass/topology/nearest_pf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hosts/topology_builder.hpp"

namespace vfpass::topology {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Two GPUs and three PFs on one root bus: all PFs are equally near to all GPUs.
struct Flat {
  hosts::TopologyBuilder machine;
  std::size_t bridge = machine.hostBridge("pci0000:00", 0);
  std::size_t gpu0 = machine.gpu("0000:01:00.0", bridge);
  std::size_t gpu1 = machine.gpu("0000:02:00.0", bridge);
  std::size_t nic0 = machine.pf("0000:03:00.0", "mlx5_0", bridge);
  std::size_t nic1 = machine.pf("0000:04:00.0", "mlx5_1", bridge);
  std::size_t nic2 = machine.pf("0000:05:00.0", "mlx5_2", bridge);

  [[nodiscard]] std::vector<std::optional<std::size_t>> chosen(
      const std::vector<NearRequest>& requests, const std::set<std::size_t>& full = {},
      const std::map<std::size_t, unsigned>& taken = {}) const {
    std::vector<std::optional<std::size_t>> pfs;
    for (const auto& near :
         nearPfs(machine.topology, requests, {{nic0, nic1, nic2}, full, taken})) {
      pfs.push_back(near.pf);
    }
    return pfs;
  }
};

TEST(NearPfs, DistributesRequestsAmongEqualPfs) {
  const Flat host;
  EXPECT_THAT(host.chosen({{host.gpu0, {}}, {host.gpu1, {}}, {host.gpu0, {}}, {host.gpu1, {}}}),
              ElementsAre(host.nic0, host.nic1, host.nic2, host.nic0));
}

// GB300: the PF is in another PCI segment, and its DMA function beside the GPU.
TEST(NearPfs, DirectNicIsAsNearAsItsDmaFunction) {
  Flat host;
  const auto segment = host.machine.hostBridge("pci0002:00", 0);
  const auto port = host.machine.function(FunctionRole::rootPort, "0002:00:00.0", segment);
  const auto up = host.machine.function(FunctionRole::upstreamPort, "0002:01:00.0", segment, port);
  const auto down = [&](const char* address) {
    return host.machine.function(FunctionRole::downstreamPort, address, segment, up);
  };
  const auto gpu = host.machine.gpu("0002:06:00.0", segment, down("0002:02:03.0"));
  const auto dma =
      host.machine.function(FunctionRole::other, "0002:03:00.0", segment, down("0002:02:00.0"));
  EXPECT_EQ(dataDistance(host.machine.topology, gpu, host.nic1), Distance::node);
  host.machine.topology.directNics.push_back({dma, host.nic1});
  EXPECT_EQ(dataDistance(host.machine.topology, gpu, host.nic1), Distance::pix);
  EXPECT_EQ(dataDistance(host.machine.topology, gpu, host.nic2), Distance::node);
  EXPECT_EQ(host.chosen({{gpu, {}, {}}}), std::vector<std::optional<std::size_t>>{host.nic1});
}

TEST(NearPfs, ReportsEquallyNearPfs) {
  const Flat host;
  const auto near = nearPfs(host.machine.topology, {{host.gpu0, {}}},
                            {{host.nic0, host.nic1, host.nic2}, {}, {}});
  EXPECT_EQ(near[0].distance, Distance::phb);
  EXPECT_THAT(near[0].alike, ElementsAre(host.nic1, host.nic2));
}

TEST(NearPfs, PrefersPfsWithFreeVfsAndLink) {
  Flat host;
  EXPECT_THAT(host.chosen({{host.gpu0, {}}}, {host.nic0}), ElementsAre(host.nic1));
  host.machine.topology.functions[host.nic0].rdma[0].ports[0].state = "DOWN";
  EXPECT_THAT(host.chosen({{host.gpu0, {}}}), ElementsAre(host.nic1));
  EXPECT_THAT(host.chosen({{host.gpu0, {}}}, {host.nic1, host.nic2}), ElementsAre(host.nic0));
}

TEST(NearPfs, CountsVfsAlreadyTaken) {
  const Flat host;
  EXPECT_THAT(host.chosen({{host.gpu0, {}}}, {}, {{host.nic0, 1}}), ElementsAre(host.nic1));
}

TEST(NearPfs, KeepsCurrentPfAmongEquals) {
  const Flat host;
  EXPECT_THAT(host.chosen({{host.gpu0, {}}, {host.gpu1, host.nic0}}),
              ElementsAre(host.nic1, host.nic0));
  EXPECT_THAT(host.chosen({{host.gpu1, host.nic2}}, {host.nic2}, {{host.nic2, 5}}),
              ElementsAre(host.nic2));
}

// gpu0 and nic0 below one root port; nic1 elsewhere on the host bridge.
struct Switched {
  hosts::TopologyBuilder machine;
  std::size_t bridge = machine.hostBridge("pci0000:00", 0);
  std::size_t port = machine.function(FunctionRole::rootPort, "0000:00:01.0", bridge);
  std::size_t gpu0 = machine.gpu("0000:01:00.0", bridge, port);
  std::size_t nic0 = machine.pf("0000:01:00.1", "mlx5_0", bridge, port);
  std::size_t gpu1 = machine.gpu("0000:02:00.0", bridge);
  std::size_t nic1 = machine.pf("0000:03:00.0", "mlx5_1", bridge);
};

TEST(NearPfs, RequestWithFewestCandidatesChoosesFirst) {
  const Switched host;
  const auto near = nearPfs(host.machine.topology, {{host.gpu1, {}}, {host.gpu0, {}}},
                            {{host.nic0, host.nic1}, {}, {}});
  EXPECT_EQ(near[0].pf, host.nic1);
  EXPECT_EQ(near[1].pf, host.nic0);
  EXPECT_EQ(near[1].distance, Distance::pix);
}

TEST(NearPfs, NeverTakesFartherPf) {
  const Switched host;
  const auto near = nearPfs(host.machine.topology, {{host.gpu0, host.nic1}},
                            {{host.nic0, host.nic1}, {host.nic0}, {}});
  EXPECT_EQ(near[0].pf, host.nic0);
  EXPECT_THAT(near[0].alike, IsEmpty());
}

TEST(NearPfs, ReturnsNoPfForHostWithoutPfs) {
  const Flat host;
  EXPECT_FALSE(nearPfs(host.machine.topology, {{host.gpu0, {}}}, {})[0].pf.has_value());
}

// A second vendor: nic2, as near as the others.
struct TwoVendors : Flat {
  TwoVendors() { machine.topology.functions[nic2].vendor = 0x14e4; }

  [[nodiscard]] std::optional<NicKind> kind(const std::vector<NearRequest>& requests,
                                            const std::set<std::size_t>& full = {}) const {
    return commonKind(machine.topology, requests, {{nic0, nic1, nic2}, full, {}});
  }
  [[nodiscard]] NicKind of(std::size_t pf) const { return kindOf(machine.topology.functions[pf]); }
};

TEST(CommonKind, FullOrUnusablePfsDoNotWin) {
  TwoVendors host;
  const std::vector<NearRequest> requests{{host.gpu0, {}}};
  EXPECT_EQ(host.kind(requests), host.of(host.nic0));
  EXPECT_EQ(host.kind(requests, {host.nic0, host.nic1}), host.of(host.nic2));
  EXPECT_EQ(host.kind(requests, {host.nic0, host.nic1, host.nic2}), host.of(host.nic0));
  for (const auto nic : {host.nic0, host.nic1}) {
    host.machine.topology.functions[nic].rdma[0].ports[0].state = "DOWN";
  }
  EXPECT_EQ(host.kind(requests), host.of(host.nic2));
}

TEST(CommonKind, AnotherEntryDoesNotMoveALease) {
  TwoVendors host;
  EXPECT_EQ(host.kind({{host.gpu0, host.nic2}, {host.gpu1, {}}}), host.of(host.nic2));
  const auto port = host.machine.function(FunctionRole::rootPort, "0000:00:01.0", host.bridge);
  for (const auto below : {host.gpu1, host.nic0}) {
    host.machine.topology.functions[below].parent = port;
  }
  EXPECT_EQ(host.kind({{host.gpu1, {}}}), host.of(host.nic0));
  EXPECT_EQ(host.kind({{host.gpu0, host.nic2}, {host.gpu1, {}}}), host.of(host.nic2))
      << "although a ConnectX is nearer to the new entry";
  const auto far = host.machine.hostBridge("pci0000:80", 1);
  const auto gpu = host.machine.gpu("0000:81:00.0", far);
  EXPECT_EQ(host.kind({{host.gpu0, host.nic2}, {gpu, {}}}), std::nullopt);
}

}  // namespace
}  // namespace vfpass::topology
