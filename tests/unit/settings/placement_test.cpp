// Memory and vCPUs: limits, huge pages, and placement next to the devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.hpp"

namespace vfpass::settings {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsNull;
using testing::NotNull;
using testing::SizeIs;

constexpr const char* viommu = "    <iommu model='intel'/>\n";

std::string withDevice(std::string xml, const std::string& device) {
  return xml.replace(xml.find("  </devices>"), 0, device);
}

TEST(HardLimit, IsNotProposedWithoutVirtualIommu) {
  const TestHost host;
  EXPECT_THAT(settingOf(proposalFor(host, domainXml(8, 16 * gib), railDevices({0})), "hard-limit"),
              IsNull());
}

TEST(HardLimit, CountsRamOncePerDeviceBehindVirtualIommu) {
  const TestHost host;
  DomainFacts facts;
  facts.bytes = 16 * gib;
  facts.viommu = true;
  facts.foreignDevices = 1;
  const auto old =
      propose({host.topology, host.capacity, facts, {Version{8, 6}, {}}, railDevices({0}), {}});
  EXPECT_EQ(elementsOf(old, "hard-limit"),
            "<hard_limit unit='KiB'>" + std::to_string((3 * 16 + 1) << 20U) + "</hard_limit>");
  const auto newer =
      propose({host.topology, host.capacity, facts, {Version{9, 0}, {}}, railDevices({0}), {}});
  EXPECT_THAT(settingOf(newer, "hard-limit"), IsNull());
}

TEST(HardLimit, ReportsLimitThatIsTooLow) {
  const TestHost host;
  const std::string low = "  <memtune>\n    <hard_limit unit='GiB'>16</hard_limit>\n  </memtune>\n";
  const auto proposal = proposalFor(host, domainXml(8, 16 * gib, low), railDevices({0}));
  ASSERT_THAT(settingOf(proposal, "hard-limit"), NotNull());
  EXPECT_EQ(settingOf(proposal, "hard-limit")->standing, SettingStanding::administrators);
  EXPECT_THAT(settingOf(proposal, "hard-limit")->what, HasSubstr("17 GiB"));
  const auto more =
      proposalFor(host, withDevice(domainXml(8, 16 * gib, low), viommu), railDevices({0}));
  EXPECT_THAT(settingOf(more, "hard-limit")->what, HasSubstr("33 GiB"));
}

TEST(HugePages, AreProposedWhenHostHasReservedThem) {
  TestHost host;
  host.capacity.nodes[0].pages[gib] = {32, 32};
  const auto proposal = proposalFor(host, domainXml(8, 16 * gib), railDevices({0}));
  EXPECT_EQ(elementsOf(proposal, "hugepages"),
            "<hugepages><page size='1048576' unit='KiB'/></hugepages>");
}

TEST(HugePages, OnOtherNodesAreIgnored) {
  TestHost host;
  host.capacity.nodes[1].pages[gib] = {32, 32};
  const auto proposal = proposalFor(host, domainXml(8, 16 * gib), railDevices({0}));
  ASSERT_THAT(settingOf(proposal, "hugepages"), NotNull());
  EXPECT_EQ(settingOf(proposal, "hugepages")->standing, SettingStanding::manual);
  EXPECT_THAT(settingOf(proposal, "hugepages")->reason, HasSubstr("hugepages=16"));
}

TEST(HugePages, AreSmallerWhenCellsAreNotMultiplesOfLargePages) {
  const TestHost host;
  const auto proposal = proposalFor(host, domainXml(2, gib), railDevices({0, 7}));
  ASSERT_THAT(settingOf(proposal, "hugepages"), NotNull());
  EXPECT_THAT(settingOf(proposal, "hugepages")->reason, HasSubstr("hugepagesz=2M hugepages=512"));
}

// An Arm kernel with pages of 64 KiB refuses `hugepagesz=1G`.
TEST(HugePages, HaveASizeThatTheHostsKernelOffers) {
  constexpr std::uint64_t mib = 1ULL << 20U;
  TestHost host;
  host.capacity.nodes[0].pages = {{mib * 2, {}}, {mib * 512, {}}, {gib * 16, {}}};
  const auto proposed = [&](std::uint64_t bytes) {
    return proposalFor(host, domainXml(8, bytes), railDevices({0}));
  };
  EXPECT_THAT(settingOf(proposed(16 * gib), "hugepages")->reason,
              HasSubstr("hugepagesz=512M hugepages=32"));
  host.capacity.nodes[0].pages[mib * 512] = {8, 8};
  EXPECT_EQ(elementsOf(proposed(4 * gib), "hugepages"),
            "<hugepages><page size='524288' unit='KiB'/></hugepages>");
  host.capacity.nodes[0].pages = {{mib / 16, {65536, 65536}}};  // 64 KiB: no gain
  EXPECT_THAT(settingOf(proposed(4 * gib), "hugepages")->reason,
              HasSubstr("hugepagesz=1G hugepages=4"));
}

TEST(HugePages, AreKeptWhenGuestUsesThem) {
  TestHost host;
  host.capacity.nodes[0].pages[gib] = {16, 0};
  const auto xml = domainXml(8, 16 * gib);
  EXPECT_THAT(elementsOf(proposalFor(host, xml, railDevices({0})), "hugepages"), IsEmpty());
  EXPECT_THAT(elementsOf(proposalFor(host, xml, railDevices({0}), {"hugepages"}), "hugepages"),
              HasSubstr("1048576"));
}

// guest_memfd, which holds the private memory, has no huge pages.
TEST(HugePages, AreNotProposedBesideGuestMemfd) {
  TestHost host;
  host.capacity.nodes[0].pages[gib] = {512, 512};
  const auto proposed = [&](const std::string& type) {
    const std::string xml = domainXml(16, 256 * gib, "  <launchSecurity type='" + type + "'/>\n");
    return settingOf(proposalFor(host, xml, railDevices({0})), "hugepages") != nullptr;
  };
  EXPECT_TRUE(proposed("sev"));
  EXPECT_FALSE(proposed("sev-snp"));
  EXPECT_FALSE(proposed("tdx"));
  EXPECT_FALSE(proposed("s390-pv"));
}

TEST(HugePages, AreNotProposedWithoutGpus) {
  const TestHost host;
  const auto proposal = proposalFor(host, domainXml(8, 16 * gib), {railDevices({0})[1]});
  EXPECT_THAT(settingOf(proposal, "hugepages"), IsNull());
  EXPECT_THAT(settingOf(proposal, "memory-placement"), NotNull());
}

TEST(Placement, PlacesGuestWithoutCellsOnNodeOfDevices) {
  const TestHost host;
  const auto proposal = proposalFor(host, domainXml(2, 16 * gib), railDevices({5}));
  EXPECT_EQ(elementsOf(proposal, "memory-placement"), "<memory mode='strict' nodeset='1'/>");
  EXPECT_EQ(elementsOf(proposal, "vcpu-placement"),
            "<vcpupin vcpu='0' cpuset='64-127'/><vcpupin vcpu='1' cpuset='64-127'/>");
  EXPECT_THAT(settingOf(proposal, "guest-cells"), IsNull());
}

TEST(Placement, DividesGuestAmongNodesOfDevices) {
  const TestHost host;
  const auto proposal = proposalFor(host, domainXml(5, 65 * gib), railDevices({0, 7}));
  EXPECT_EQ(elementsOf(proposal, "guest-cells"),
            "<numa><cell id='0' cpus='0-1' memory='33554432' unit='KiB'/>"
            "<cell id='1' cpus='2-4' memory='34603008' unit='KiB'/></numa>");
  EXPECT_EQ(elementsOf(proposal, "memory-placement"),
            "<memory mode='strict' nodeset='0-1'/>"
            "<memnode cellid='0' mode='strict' nodeset='0'/>"
            "<memnode cellid='1' mode='strict' nodeset='1'/>");
  ASSERT_THAT(proposal.cells, SizeIs(2));
  EXPECT_EQ(proposal.cells[1], (GuestCell{1, {1}}));
}

TEST(Placement, UsesExistingCells) {
  const TestHost host;
  const std::string numa =
      "    <numa>\n"
      "      <cell id='0' cpus='0' memory='8388608' unit='KiB'/>\n"
      "      <cell id='1' cpus='1' memory='8388608' unit='KiB'/>\n"
      "    </numa>\n";
  const auto proposal = proposalFor(host, domainXml(2, 16 * gib, "", numa), railDevices({0}));
  EXPECT_THAT(elementsOf(proposal, "memory-placement"),
              HasSubstr("<memnode cellid='1' mode='strict' nodeset='1'/>"));
  EXPECT_EQ(elementsOf(proposal, "vcpu-placement"),
            "<vcpupin vcpu='0' cpuset='0-63'/><vcpupin vcpu='1' cpuset='64-127'/>");
}

// AMD NPS4: cells cannot have the numbers of the nodes, so they are matched by order as in the
// mirrored tree.
TEST(Placement, MatchesCellsByOrderWhenNumbersDiffer) {
  TestHost host;
  for (auto& function : host.topology.functions) {
    function.numaNode = function.numaNode * 2 + 1;
  }
  host.topology.processors.nodes = {{0, "0"}, {1, "0000000f"}, {2, "0"}, {3, "000000f0"}};
  const std::string numa =
      "    <numa>\n"
      "      <cell id='0' cpus='0' memory='8388608' unit='KiB'/>\n"
      "      <cell id='1' cpus='1' memory='8388608' unit='KiB'/>\n"
      "    </numa>\n";
  const auto proposal = proposalFor(host, domainXml(2, 16 * gib, "", numa), railDevices({0, 7}));
  EXPECT_EQ(elementsOf(proposal, "vcpu-placement"),
            "<vcpupin vcpu='0' cpuset='0-3'/><vcpupin vcpu='1' cpuset='4-7'/>");
}

TEST(Placement, ReportsLackOfMemoryOrCpusOnNode) {
  TestHost host;
  host.capacity.nodes[0].bytes = 8 * gib;
  const auto small = proposalFor(host, domainXml(65, 16 * gib), railDevices({0}));
  EXPECT_EQ(settingOf(small, "memory-placement")->standing, SettingStanding::manual);
  EXPECT_THAT(settingOf(small, "memory-placement")->reason, HasSubstr("host node 0 has 8 GiB"));
  EXPECT_EQ(settingOf(small, "vcpu-placement")->standing, SettingStanding::manual);
  EXPECT_THAT(settingOf(small, "vcpu-placement")->reason, HasSubstr("64 CPUs for 65 vCPUs"));
  const auto one = proposalFor(host, domainXml(1, 16 * gib), railDevices({0, 7}));
  EXPECT_THAT(settingOf(one, "memory-placement")->reason, HasSubstr("cannot be divided"));
  EXPECT_THAT(settingOf(one, "guest-cells"), IsNull());
}

TEST(Placement, KeepsPlacementOfAdministrator) {
  const TestHost host;
  const std::string tuned =
      "  <cputune>\n    <vcpupin vcpu='0' cpuset='0-3'/>\n  </cputune>\n"
      "  <numatune>\n    <memory mode='strict' nodeset='0'/>\n  </numatune>\n";
  const auto there = proposalFor(host, domainXml(2, 16 * gib, tuned), railDevices({0}));
  EXPECT_THAT(settingOf(there, "memory-placement"), IsNull());
  EXPECT_THAT(settingOf(there, "vcpu-placement"), IsNull());
  const auto elsewhere = proposalFor(host, domainXml(2, 16 * gib, tuned), railDevices({7}));
  for (const char* name : {"memory-placement", "vcpu-placement"}) {
    ASSERT_THAT(settingOf(elsewhere, name), NotNull()) << name;
    EXPECT_EQ(settingOf(elsewhere, name)->standing, SettingStanding::administrators) << name;
  }
}

TEST(Placement, ReportsCellsOnOtherNodes) {
  const TestHost host;
  const std::string tune =
      "  <numatune>\n    <memnode cellid='0' mode='strict' nodeset='0'/>\n  </numatune>\n";
  const std::string numa =
      "    <numa>\n      <cell id='0' cpus='0-1' memory='16777216' unit='KiB'/>\n    </numa>\n";
  const auto proposal = proposalFor(host, domainXml(2, 16 * gib, tune, numa), railDevices({7}));
  ASSERT_THAT(settingOf(proposal, "memory-placement"), NotNull());
  EXPECT_EQ(settingOf(proposal, "memory-placement")->standing, SettingStanding::administrators);
  EXPECT_THAT(settingOf(proposal, "memory-placement")->reason,
              HasSubstr("sit on host node 1; DMA"));
}

TEST(Placement, IsNotProposedOnOneNode) {
  TestHost host;
  host.topology.processors.nodes.resize(1);
  const auto proposal = proposalFor(host, domainXml(2, 16 * gib), railDevices({0}));
  EXPECT_THAT(settingOf(proposal, "memory-placement"), IsNull());
  EXPECT_THAT(settingOf(proposal, "vcpu-placement"), IsNull());
}

}  // namespace
}  // namespace vfpass::settings
