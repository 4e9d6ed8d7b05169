#include "vfpass/inventory/read_inventory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "hosts/sysfs_tree.hpp"

namespace vfpass::inventory {
namespace {

using hosts::SysfsTree;
using testing::HasSubstr;
using testing::IsEmpty;

Topology read(const SysfsTree& tree) { return readTopology(host::Root(tree.path())); }

// `path` is below sys/devices; its last component is the function.
void add(const SysfsTree& tree, const std::string& path, const std::string& uevent) {
  const std::string name = path.substr(path.rfind('/') + 1);
  tree.file("sys/devices/" + path + "/uevent", uevent);
  tree.link("sys/bus/pci/devices/" + name, "sys/devices/" + path);
}

const Device& at(const Topology& topology, const char* address) {
  const auto* found = findFunction(topology, parsePciAddress(address).value());
  if (found == nullptr) {
    throw std::runtime_error(std::string("there is no ") + address);
  }
  return *found;
}

constexpr const char* bridge = "PCI_CLASS=60400\nPCI_ID=8086:352A\n";
constexpr const char* gpu = "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\n";
constexpr const char* nic = "DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=15B3:1021\n";

TEST(ReadTopology, ReadsPlacesAndRoles) {
  const SysfsTree tree;
  add(tree, "pci0000:3a/0000:3a:00.0", bridge);
  add(tree, "pci0000:3a/0000:3a:00.0/0000:3b:00.0", bridge);
  add(tree, "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0", bridge);
  add(tree, "pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0", gpu);
  add(tree, "pci0000:00/0000:00:02.0", "PCI_CLASS=30000\nPCI_ID=1A03:2000\n");
  const Topology topology = read(tree);
  EXPECT_THAT(topology.problems, IsEmpty());
  ASSERT_EQ(topology.hostBridges.size(), 2U);
  EXPECT_EQ(topology.hostBridges[at(topology, "0000:3d:00.0").hostBridge].name, "pci0000:3a");
  EXPECT_EQ(at(topology, "0000:3a:00.0").role, FunctionRole::rootPort);
  EXPECT_EQ(at(topology, "0000:3b:00.0").role, FunctionRole::upstreamPort);
  EXPECT_EQ(at(topology, "0000:3c:00.0").role, FunctionRole::downstreamPort);
  EXPECT_EQ(at(topology, "0000:3d:00.0").role, FunctionRole::gpu);
  EXPECT_EQ(at(topology, "0000:3d:00.0").driver, "nvidia");
  EXPECT_EQ(at(topology, "0000:00:02.0").role, FunctionRole::other)
      << "the board's onboard display";
  const auto parent = at(topology, "0000:3d:00.0").parent;
  ASSERT_TRUE(parent);
  EXPECT_EQ(toString(topology.functions[*parent].address), "0000:3c:00.0");
}

TEST(ReadTopology, ReadsDomainsWiderThan16BitsBehindFunction) {
  const SysfsTree tree;
  add(tree, "pci0000:00/0000:00:0e.0", "PCI_CLASS=10400\nPCI_ID=8086:201D\n");
  add(tree, "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:00.0", bridge);
  add(tree, "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:00.0/10000:e1:00.0", nic);
  const Topology topology = read(tree);
  EXPECT_THAT(topology.problems, IsEmpty());
  const Device& found = at(topology, "10000:e1:00.0");
  EXPECT_EQ(topology.hostBridges[found.hostBridge].name, "pci10000:e0");
  EXPECT_FALSE(at(topology, "10000:e0:00.0").parent);
}

TEST(ReadTopology, ReadsPortsOfNic) {
  const SysfsTree tree;
  const std::string path = "pci0000:00/0000:00:01.0/0000:01:00.0";
  add(tree, "pci0000:00/0000:00:01.0", bridge);
  add(tree, path, nic);
  const std::string rdma = "sys/devices/" + path + "/infiniband/mlx5_0";
  tree.file(rdma + "/fw_ver", "28.39.2048\n");
  tree.file(rdma + "/node_guid", "946d:ae03:0050:7000\n");
  tree.file(rdma + "/ports/1/state", "4: ACTIVE\n");
  tree.file(rdma + "/ports/1/rate", "2.5 Gb/sec (1X SDR)\n");
  tree.file(rdma + "/ports/1/link_layer", "InfiniBand\n");
  tree.file("sys/devices/" + path + "/net/ib0/ifindex", "7\n");
  tree.file("sys/devices/" + path + "/net/ib0/flags", "0x1003\n");
  tree.file("sys/devices/" + path + "/sriov_totalvfs", "8\n");
  const Topology topology = read(tree);
  const Device& found = at(topology, "0000:01:00.0");
  EXPECT_TRUE(isPf(found));
  EXPECT_EQ(found.totalVfs, 8U);
  ASSERT_EQ(found.netdevs.size(), 1U);
  EXPECT_TRUE(found.netdevs[0].up);
  ASSERT_EQ(found.rdma.size(), 1U);
  EXPECT_EQ(found.rdma[0].firmware, "28.39.2048");
  ASSERT_EQ(found.rdma[0].ports.size(), 1U);
  EXPECT_EQ(found.rdma[0].ports[0].state, "ACTIVE");
  EXPECT_EQ(found.rdma[0].ports[0].rate, 2500U);
  EXPECT_EQ(found.rdma[0].ports[0].linkLayer, LinkLayer::infiniband);
}

TEST(ReadTopology, RelatesVfsToTheirPf) {
  const SysfsTree tree;
  tree.pf(8);
  tree.vf(0);
  tree.vf(1);
  const Topology topology = read(tree);
  EXPECT_EQ(at(topology, "0000:01:00.0").vfCount, 2U);
  const Device& vf = at(topology, "0000:01:00.2");
  EXPECT_EQ(vf.vfIndex, 1U);
  EXPECT_EQ(toString(vf.physicalFunction.value()), "0000:01:00.0");
  EXPECT_FALSE(isPf(vf));
}

std::string summaryOf(const Topology& topology) {
  std::ostringstream text;
  for (const auto& function : topology.functions) {
    text << toString(function.address) << ' ' << function.vendor << ' ' << function.vfCount << ' '
         << function.totalVfs << ' ' << function.vfIndex.value_or(0) << ' '
         << (function.physicalFunction ? toString(*function.physicalFunction) : "-") << ' '
         << function.iommuGroup.value_or(0) << '\n';
  }
  for (const auto& problem : topology.problems) {
    text << problem.object << ": " << problem.what << '\n';
  }
  return text.str();
}

// Enough functions for several threads; a recording uses one thread.
TEST(ReadTopology, ThreadsAndRecordingReadTheSame) {
  constexpr unsigned pfs = 64;
  constexpr unsigned vfsEach = 7;
  const SysfsTree tree;
  for (unsigned bus = 0; bus < pfs; ++bus) {
    PciAddress address{0, static_cast<std::uint8_t>(bus + 1), 0, 0};
    const std::string pf = tree.function(toString(address));
    tree.file(pf + "/sriov_totalvfs", std::to_string(vfsEach) + "\n");
    for (unsigned index = 0; index < vfsEach; ++index) {
      address.function = static_cast<std::uint8_t>(index + 1);
      const std::string vf = tree.function(toString(address));
      tree.link(vf + "/physfn", pf);
      tree.link(pf + "/virtfn" + std::to_string(index), vf);
      tree.group(toString(address), bus * vfsEach + index + 1);
    }
    if (bus % 8 == 0) {  // it has just been removed
      tree.remove(pf + "/virtfn0");
      std::filesystem::remove_all(tree.path() / SysfsTree::folderOf(toString(address)));
    }
  }
  host::Root recorded(tree.path());
  host::Recording recording(std::filesystem::canonical(tree.path()));
  recorded.recordInto(recording);
  const std::string oneAfterAnother = summaryOf(readTopology(recorded));
  EXPECT_EQ(summaryOf(read(tree)), oneAfterAnother);
  EXPECT_THAT(oneAfterAnother, HasSubstr("0000:40:00.6 5555 0 0 5 0000:40:00.0 447\n"));
}

TEST(ReadTopology, ReportsFunctionThatIsItsOwnParent) {
  const SysfsTree tree;
  add(tree, "pci0000:00/0000:00:01.0/0000:00:01.0", bridge);
  const Topology topology = read(tree);
  ASSERT_EQ(topology.problems.size(), 1U);
  EXPECT_EQ(topology.problems[0].object, "0000:00:01.0");
  EXPECT_FALSE(at(topology, "0000:00:01.0").parent);
}

TEST(ReadTopology, ReportsFunctionsThatAreEachOthersParent) {
  const SysfsTree tree;
  add(tree, "pci0000:00/0000:00:01.0/0000:01:00.0", nic);
  add(tree, "pci0000:00/0000:01:00.0/0000:00:01.0", bridge);
  const Topology topology = read(tree);
  EXPECT_EQ(topology.problems.size(), 2U);
  EXPECT_FALSE(at(topology, "0000:01:00.0").parent);
  EXPECT_FALSE(at(topology, "0000:00:01.0").parent);
}

TEST(ReadTopology, ReportsVfsThatNameEachOtherAsPf) {
  const SysfsTree tree;
  const std::string one = tree.function("0000:01:00.0");
  const std::string other = tree.function("0000:01:00.1");
  tree.link(one + "/physfn", other);
  tree.link(other + "/physfn", one);
  tree.link(one + "/virtfn0", one);
  tree.file(one + "/sriov_totalvfs", "4\n");
  EXPECT_FALSE(read(tree).problems.empty());
  tree.link(one + "/physfn", one);
  EXPECT_FALSE(at(read(tree), "0000:01:00.0").physicalFunction);
}

TEST(ReadTopology, DoesNotFollowLinksOutOfTree) {
  const SysfsTree tree;
  const SysfsTree elsewhere;
  elsewhere.file("0000:01:00.0/uevent", gpu);
  const auto devices = tree.path() / "sys/bus/pci/devices";
  std::filesystem::create_symlink(elsewhere.path() / "0000:01:00.0", devices / "0000:01:00.0");
  std::filesystem::create_symlink("../../../devices/../../../etc/0000:02:00.0",
                                  devices / "0000:02:00.0");
  // A directory of the path is a link: the function is found by name, but not read.
  add(tree, "pci0000:00/0000:00:01.0", bridge);
  std::filesystem::create_directory_symlink(elsewhere.path(),
                                            tree.path() / "sys/devices/pci0000:00/0000:00:01.1");
  std::filesystem::create_symlink("../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0",
                                  devices / "0000:01:00.1");
  add(tree, "pci0000:00/0000:00:03.0", bridge);
  std::filesystem::remove(tree.path() / "sys/devices/pci0000:00/0000:00:03.0/uevent");
  std::filesystem::create_symlink(elsewhere.path() / "0000:01:00.0/uevent",
                                  tree.path() / "sys/devices/pci0000:00/0000:00:03.0/uevent");
  const Topology topology = read(tree);
  EXPECT_EQ(topology.functions.size(), 2U);
  EXPECT_EQ(topology.problems.size(), 3U);
  EXPECT_EQ(at(topology, "0000:00:03.0").vendor, 0U);
}

// The read-only resource of a ConnectX with this vendor-specific field.
std::string vpdWith(const std::string& list) {
  const std::string fields = "SN\x03MT1VA" + std::string(1, static_cast<char>(list.size())) + list;
  return "\x82" + std::string("\x01\0X\x90", 4) + std::string(1, static_cast<char>(fields.size())) +
         std::string(1, '\0') + fields + "\x78";
}

class NvlinkManagementTest : public testing::Test {
 protected:
  NvlinkManagementTest() {
    for (const char* function : {"0000:05:00.0", "0000:05:00.1"}) {
      add(tree, std::string("pci0000:00/") + function,
          "DRIVER=mlx5_core\nPCI_CLASS=20700\nPCI_ID=15B3:1021\n");
    }
    setVpd("MLX:MODL=C7:SMDL=SW_MNG");
  }
  void setVpd(const std::string& list) {
    tree.file("sys/devices/pci0000:00/0000:05:00.0/vpd", vpdWith(list));
  }
  FunctionRole role(host::Serials serials) {
    const Topology topology = readTopology(host::Root(tree.path()), serials);
    EXPECT_EQ(at(topology, "0000:05:00.0").role, at(topology, "0000:05:00.1").role);
    return at(topology, "0000:05:00.0").role;
  }
  SysfsTree tree;
};

TEST_F(NvlinkManagementTest, IsFoundByVpdAlsoWithoutSerials) {
  EXPECT_EQ(role(host::Serials::read), FunctionRole::nvlinkManagement);
  EXPECT_EQ(role(host::Serials::skip), FunctionRole::nvlinkManagement);
  const Topology topology = readTopology(host::Root(tree.path()), host::Serials::skip);
  EXPECT_EQ(at(topology, "0000:05:00.0").serial, "") << "not asked for";
  setVpd("MLX:MODL=C7");
  EXPECT_EQ(role(host::Serials::read), FunctionRole::nic);
}

// A firmware that shows SR-IOV for them changes nothing.
TEST_F(NvlinkManagementTest, MayHaveSriovBesideBlackwellGpus) {
  for (const char* function : {"0000:05:00.0", "0000:05:00.1"}) {
    tree.file(std::string("sys/devices/pci0000:00/") + function + "/sriov_totalvfs", "16\n");
  }
  add(tree, "pci0000:00/0000:18:00.0", "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2901\n");
  EXPECT_EQ(role(host::Serials::skip), FunctionRole::nvlinkManagement);
  EXPECT_EQ(role(host::Serials::read), FunctionRole::nvlinkManagement);
}

std::string vpdOfCard(const std::string& card) {
  const std::string fields = "SN\x03MT1V3" + std::string(1, static_cast<char>(card.size())) + card;
  return "\x82" + std::string("\x01\0X\x90", 4) + std::string(1, static_cast<char>(fields.size())) +
         std::string(1, '\0') + fields + "\x78";
}

/// Two PFs, and a Direct NIC's DMA function in another PCI segment.
class DirectNicTest : public testing::Test {
 protected:
  DirectNicTest() {
    for (const char* pf : {"pci0000:00/0000:03:00.0", "pci0000:40/0000:43:00.0"}) {
      add(tree, pf, "DRIVER=mlx5_core\nPCI_CLASS=20700\nPCI_ID=15B3:1023\n");
      tree.file(std::string("sys/devices/") + pf + "/sriov_totalvfs", "16\n");
    }
    add(tree, "pci0002:00/0002:03:00.0", "PCI_CLASS=80000\nPCI_ID=15B3:2100\n");
    setCard("pci0002:00/0002:03:00.0", "card-2");
    setCard("pci0000:00/0000:03:00.0", "card-1");
    setCard("pci0000:40/0000:43:00.0", "card-2");
  }
  void setCard(const std::string& path, const std::string& card) {
    tree.file("sys/devices/" + path + "/vpd", vpdOfCard(card));
  }
  std::vector<std::string> pairs() {
    const Topology topology = readTopology(host::Root(tree.path()), host::Serials::skip);
    std::vector<std::string> found;
    for (const DirectNic& each : topology.directNics) {
      found.push_back(toString(topology.functions[each.dma].address) + " " +
                      toString(topology.functions[each.pf].address));
    }
    return found;
  }
  SysfsTree tree;
};

TEST_F(DirectNicTest, IsPairedWithPfOfSameCard) {
  EXPECT_THAT(pairs(), testing::ElementsAre("0002:03:00.0 0000:43:00.0"));
}

TEST_F(DirectNicTest, IsPairedWithNoneWhereCardIsUnknownOrAmbiguous) {
  setCard("pci0000:00/0000:03:00.0", "card-2");
  EXPECT_THAT(pairs(), testing::IsEmpty());
  setCard("pci0000:00/0000:03:00.0", "");
  setCard("pci0002:00/0002:03:00.0", "");
  EXPECT_THAT(pairs(), testing::IsEmpty());
}

TEST(ReadTopology, ReportsOrZeroesInvalidValues) {
  const SysfsTree tree;
  const std::string megabyte(1 << 20, 'x');
  const std::string path = "pci0000:00/0000:00:01.0";
  const std::string folder = "sys/devices/" + path;
  add(tree, path, "DRIVER=mlx5_core\nPCI_CLASS=zzz\nPCI_ID=:\n=\n\nPCI_SLOT_NAME=0000:00:07.0\n");
  tree.file(folder + "/config", "short");
  tree.file(folder + "/numa_node", megabyte);
  tree.file(folder + "/sriov_totalvfs", "99999999999999999999");
  tree.file(folder + "/current_link_width", "255\n");
  tree.file(folder + "/max_link_speed", "Unknown\n");
  tree.file(folder + "/vpd", megabyte);
  tree.file(folder + "/infiniband/mlx5_0/fw_ver", megabyte);
  tree.file(folder + "/infiniband/mlx5_0/ports/1/rate", std::string("\x1b[2J\0", 5));
  tree.file("proc/cpuinfo", megabyte);
  tree.file("sys/devices/system/node/node0/cpumap", "<&>\n");
  tree.file("sys/devices/system/node/node99999999999999999999/cpumap", "1\n");
  tree.file("sys/bus/pci/devices/what is this", "");
  ASSERT_EQ(::mkfifo((tree.path() / folder / "sriov_offset").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((tree.path() / folder / "class").c_str(), 0600), 0);
  const Topology topology = read(tree);
  const Device& found = at(topology, "0000:00:01.0");
  EXPECT_EQ(found.classCode, 0U);
  EXPECT_EQ(found.numaNode, -1);
  EXPECT_EQ(found.totalVfs, 0U);
  EXPECT_EQ(found.best, PcieLink{});
  EXPECT_EQ(found.rdma.at(0).firmware.size(), 64U);
  EXPECT_EQ(topology.processors.nodes.at(0).cpuMask, "");
  EXPECT_EQ(topology.processors.nodes.size(), 1U);
  ASSERT_EQ(topology.problems.size(), 3U);
  EXPECT_THAT(topology.problems[1].what, HasSubstr("0000:00:07.0"));
  EXPECT_THAT(topology.problems[2].what, HasSubstr("fw_ver"));
}

TEST(ReadTopology, ReportsRemovedFunction) {
  const SysfsTree tree;
  add(tree, "pci0000:00/0000:00:01.0", nic);
  tree.remove("sys/devices/pci0000:00/0000:00:01.0");
  const Topology topology = read(tree);
  ASSERT_EQ(topology.problems.size(), 1U);
  EXPECT_EQ(topology.problems[0].what, "no longer present");
}

TEST(ReadTopology, ReadsProcessors) {
  const SysfsTree tree;
  tree.file("proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n\n"
            "processor\t: 1\nvendor_id\t: Another\n");
  tree.file("sys/devices/system/node/node1/cpumap", "ffff0000\n");
  tree.file("sys/devices/system/node/node0/cpumap", "0000ffff\n");
  const Processors processors = read(tree).processors;
  EXPECT_EQ(processors.architecture, "x86_64");
  EXPECT_EQ(processors.vendor, "AuthenticAMD");
  EXPECT_EQ(processors.family, 25U);
  EXPECT_EQ(processors.model, 17U);
  ASSERT_EQ(processors.nodes.size(), 2U);
  EXPECT_EQ(processors.nodes[1].cpuMask, "ffff0000");
}

}  // namespace
}  // namespace vfpass::inventory
