#include "sriov/pf_and_vfs.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "hosts/sysfs_tree.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/device_identity.hpp"
#include "vfpass/host/system_kernel.hpp"

namespace vfpass::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr PciAddress pfAddress{0, 1, 0, 0};

std::string vpd(const std::string& fields, char tag = '\x90') {
  const std::string product = "ConnectX-6";
  std::string bytes =
      "\x82" + std::string(1, static_cast<char>(product.size())) + std::string(1, '\0') + product;
  bytes += tag;
  bytes += static_cast<char>(fields.size() & 0xffU);
  bytes += static_cast<char>(fields.size() >> 8U);
  return bytes + fields + "\x78";
}

std::string field(const std::string& keyword, const std::string& value) {
  return keyword + static_cast<char>(value.size()) + value;
}

VitalProductData dataOf(const std::string& bytes) {
  return findVpd([&](std::size_t offset, std::size_t length) {
    return offset < bytes.size() ? bytes.substr(offset, length) : std::string{};
  });
}

std::string serialOf(const std::string& bytes) { return dataOf(bytes).serial; }

TEST(VitalProductData, FindsSerialNumber) {
  EXPECT_EQ(serialOf(vpd(field("PN", "MCX6") + field("SN", "MT2042X01234  ") + field("V0", "x"))),
            "MT2042X01234");
  EXPECT_EQ(serialOf(vpd(field("SN", std::string("AB\0\0", 4)))), "AB");
}

// rdma-core's rdma_topo pairs a PF with its Direct NIC by this field.
TEST(VitalProductData, FindsCard) {
  const std::string card = "aaaaaaaa-0000-11ee-8000-000000000001";
  const VitalProductData data = dataOf(vpd(field("SN", "MT1") + field("V3", card) +
                                           field("VA", "MLX:UUID=V3:SMDL=C8") + field("V3", "x")));
  EXPECT_EQ(data.card, card);
  EXPECT_EQ(data.subModel, "C8");
  EXPECT_EQ(dataOf(vpd(field("VA", "UUID=V3"))).card, "");
}

// As captured on HGX B200, shortened.
TEST(VitalProductData, FindsSubModel) {
  const std::string list = "MLX:MN=MLNX:PCI=V0:MODL=C7:SMDL=SW_MNG";
  const VitalProductData data = dataOf(vpd(field("SN", "MT1") + field("VA", list)));
  EXPECT_EQ(data.serial, "MT1");
  EXPECT_EQ(data.subModel, "SW_MNG");
  EXPECT_EQ(dataOf(vpd(field("V3", "SMDL=SW_MNG:MODL=C7") + field("SN", "MT1"))).subModel,
            "SW_MNG");
  for (const char* other : {"MODL=C7", "XSMDL=SW_MNG", "SMDL:SW_MNG", "SMDL", ":::", "SMDL="}) {
    EXPECT_EQ(dataOf(vpd(field("VA", other))).subModel, "");
  }
  EXPECT_EQ(dataOf(vpd(field("PN", list))).subModel, "") << "no field of the vendor";
  EXPECT_EQ(dataOf(vpd(field("VA", "SMDL=\033[2J"))).subModel.find('\033'), std::string::npos);
}

TEST(VitalProductData, ReturnsNothingForMalformedData) {
  EXPECT_EQ(serialOf(""), "");
  EXPECT_EQ(serialOf(vpd(field("PN", "MCX6"))), "");
  EXPECT_EQ(serialOf(vpd(field("SN", "x"), '\x91')), "");
  EXPECT_EQ(serialOf(vpd("SN\x40short")), "");
  EXPECT_EQ(serialOf(std::string(4096, '\xff')), "");
  EXPECT_EQ(serialOf(std::string(70000, '\x82')), "");
  EXPECT_EQ(serialOf(vpd(field("SN", "A\033[2J"))).find('\033'), std::string::npos);
}

TEST(VitalProductData, ToleratesRandomDamage) {
  std::mt19937 random(7);
  const std::string whole = vpd(field("PN", "MCX6") + field("SN", "MT2042X01234"));
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole.substr(0, random() % (whole.size() + 1));
    if (!damaged.empty()) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    EXPECT_LE(serialOf(damaged).size(), 4 * whole.size());
  }
}

// A process that can be abandoned reads the same parts of a live card's file.
TEST(VitalProductData, IsReadByAGuardedProcess) {
  const hosts::SysfsTree tree;
  const auto copyOf = [&](const std::string& content) {
    tree.file("vpd", content);
    const FileDescriptor file = Root(tree.path()).open("vpd", O_RDONLY);
    return readVpdGuarded(file.get(), std::chrono::seconds(5));
  };
  EXPECT_EQ(serialOf(copyOf(vpd(field("PN", "MCX6") + field("SN", "MT2042X01234")))),
            "MT2042X01234");
  for (const std::string& content :
       {std::string(), vpd(field("SN", "x"), '\x91'), std::string(4096, '\xff'),
        std::string(70000, '\x82'), vpd(field("SN", "MT1")).substr(0, 14)}) {
    EXPECT_EQ(serialOf(copyOf(content)), "");
  }
}

class ReadPfTest : public testing::Test {
 protected:
  PhysicalFunction read() {
    return readPhysicalFunctions(Root(tree_.path()), {pfAddress}, std::chrono::milliseconds(1000))
        .at(0);
  }
  hosts::SysfsTree tree_;
};

TEST_F(ReadPfTest, ReadsPf) {
  const std::string folder = tree_.pf(8);
  tree_.file(folder + "/numa_node", "1\n");
  tree_.file(folder + "/vpd", vpd(field("SN", "MT1")));
  tree_.file(folder + "/sriov_drivers_autoprobe", "0\n");
  tree_.file(folder + "/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  const auto pf = read();
  EXPECT_EQ(pf.address, pfAddress);
  EXPECT_EQ(pf.path, "pci0000:00/0000:00:01.0/0000:01:00.0");
  EXPECT_EQ(pf.vendor, 0x15b3);
  EXPECT_EQ(pf.device, 0x101d);
  EXPECT_EQ(pf.serial, "MT1");
  EXPECT_EQ(pf.driver, "mlx5_core");
  EXPECT_EQ(pf.netdev(), "ens1f0np0");
  EXPECT_EQ(pf.uplink().index, 7);
  EXPECT_TRUE(pf.uplink().up);
  EXPECT_EQ(pf.rdmaDevice(), "mlx5_0");
  EXPECT_EQ(pf.linkLayer, LinkLayer::ethernet);
  EXPECT_EQ(pf.numaNode, 1);
  EXPECT_EQ(pf.totalVfs, 8U);
  EXPECT_FALSE(pf.probesVfs);
  EXPECT_THAT(pf.vfs, IsEmpty());
}

// Each read is many requests to the card's firmware.
TEST_F(ReadPfTest, ReadsSerialNumberOnlyIfWanted) {
  const std::string folder = tree_.pf(8);
  tree_.file(folder + "/vpd", vpd(field("SN", "MT1")));
  for (const Serials serials : {Serials::read, Serials::skip}) {
    Recording recording(tree_.path());
    Root root(tree_.path());
    root.recordInto(recording);
    const auto pf = readPfIdentity(root, pfAddress, serials);
    const bool read = serials == Serials::read;
    EXPECT_EQ(pf->serial, read ? "MT1" : "");
    EXPECT_EQ(recording.entries().contains(folder + "/vpd"), read);
  }
}

TEST_F(ReadPfTest, DoesNotReadVfCount) {
  // Reading it blocks while a removal hangs, so a wrong count must have no effect.
  const std::string folder = tree_.pf(8);
  tree_.vf(0);
  tree_.file(folder + "/sriov_numvfs", "5\n");
  EXPECT_EQ(read().vfs.size(), 1U);
}

TEST_F(ReadPfTest, ReadsVfsInOrderOfIndex) {
  tree_.pf(16);
  tree_.bind(tree_.vf(2), "vfio-pci");
  tree_.bind(tree_.vf(0), "mlx5_core");
  tree_.file(tree_.folderOf("0000:01:00.3") + "/driver_override", "vfio-pci\n");
  tree_.netdev("0000:01:00.1", "ens1f0v0", 11, "0x1003");
  tree_.link(tree_.folderOf("0000:01:00.1") + "/net/ens1f0v0/master",
             "sys/devices/virtual/net/bond0");
  tree_.group("0000:01:00.1", 12);
  tree_.group("0000:01:00.3", 12);
  const auto pf = read();
  ASSERT_EQ(pf.vfs.size(), 2U);
  const VirtualFunction& first = pf.vfs[0];
  EXPECT_EQ(first.index, 0U);
  EXPECT_EQ(toString(first.address), "0000:01:00.1");
  EXPECT_EQ(first.driver, "mlx5_core");
  EXPECT_EQ(first.driverOverride, "");
  EXPECT_EQ(first.iommuGroup, 12U);
  EXPECT_THAT(first.groupPeers,
              ElementsAre(testing::Field(&GroupPeer::address, PciAddress{0, 1, 0, 3})));
  ASSERT_EQ(first.netdevs.size(), 1U);
  EXPECT_TRUE(first.netdevs[0].up);
  EXPECT_TRUE(first.netdevs[0].enslaved);
  EXPECT_FALSE(first.settingsReadable);
  EXPECT_EQ(pf.vfs[1].index, 2U);
  EXPECT_EQ(pf.vfs[1].driver, "vfio-pci");
  EXPECT_EQ(pf.vfs[1].driverOverride, "vfio-pci");
  EXPECT_FALSE(pf.vfs[1].vfioInUse);
  EXPECT_EQ(pf.vfs[1].vfioUser, "");
}

TEST_F(ReadPfTest, NamesVfioHolderOfVf) {
  tree_.pf(16);
  tree_.bind(tree_.vf(2), "vfio-pci");
  tree_.group("0000:01:00.3", 12);
  tree_.file("sys/class/vfio/12/dev", "240:0\n");
  tree_.file("proc/4711/comm", "qemu-system-x86\n");
  tree_.file("proc/4711/cmdline", std::string("qemu\0-name\0guest=train,,0,debug=on\0-S\0", 39));
  std::filesystem::create_directories(tree_.path() / "proc/4711/fd");
  std::filesystem::create_symlink("/dev/vfio/12", tree_.path() / "proc/4711/fd/30");
  const auto held = read().vfs.back();
  EXPECT_TRUE(held.vfioInUse);
  EXPECT_EQ(held.vfioUser, "qemu-system-x86 (pid 4711), guest train,0");
  tree_.file("proc/4711/cmdline", std::string("dpdk\0-a\0", 8));
  EXPECT_EQ(read().vfs.back().vfioUser, "qemu-system-x86 (pid 4711)");
  std::filesystem::remove(tree_.path() / "proc/4711/fd/30");
  EXPECT_FALSE(read().vfs.back().vfioInUse);
}

TEST_F(ReadPfTest, SkipsVfThatDisappeared) {
  tree_.pf(8);
  tree_.vf(0);
  tree_.vf(1);
  tree_.remove("sys/bus/pci/devices/0000:01:00.1");
  const auto pf = read();
  ASSERT_EQ(pf.vfs.size(), 1U);
  EXPECT_EQ(pf.vfs[0].index, 1U);
}

TEST_F(ReadPfTest, SkipsMalformedVfLinks) {
  const std::string folder = tree_.pf(8);
  std::filesystem::create_symlink("../not-an-address", tree_.path() / folder / "virtfn0");
  std::filesystem::create_symlink("../0000:01:00.1", tree_.path() / folder / "virtfnX");
  tree_.file(folder + "/virtfn3", "no link");
  EXPECT_THAT(read().vfs, IsEmpty());
}

TEST_F(ReadPfTest, SelectsUplinkBeforeRepresentors) {
  const std::string folder = tree_.pf(8);
  tree_.netdev("0000:01:00.0", "eth0", 3);
  tree_.file(folder + "/net/eth0/phys_port_name", "pf0vf1\n");
  tree_.file(folder + "/net/ens1f0np0/phys_port_name", "p0\n");
  EXPECT_EQ(read().netdev(), "ens1f0np0");
}

TEST_F(ReadPfTest, NamesRepresentorsOfItsVfs) {
  const std::string folder = tree_.pf(8);
  tree_.vf(0);
  tree_.vf(1);
  const auto port = [&](const std::string& netdev, const std::string& name,
                        const std::string& switchId) {
    tree_.netdev("0000:01:00.0", netdev, 10 + static_cast<int>(netdev.back()));
    tree_.file(folder + "/net/" + netdev + "/phys_port_name", name + "\n");
    tree_.file(folder + "/net/" + netdev + "/phys_switch_id", switchId + "\n");
  };
  port("ens1f0np0", "p0", "aa");
  port("eth1", "pf0vf1", "aa");
  port("eth2", "c1pf0vf0", "aa");
  port("eth3", "pf1vf0", "aa");
  port("eth4", "pf0vf0", "bb");
  port("eth5", "pf0vf99999999999999999999", "aa");
  const PhysicalFunction pf = read();
  ASSERT_EQ(pf.vfs.size(), 2U);
  EXPECT_EQ(pf.vfs[0].representor, "") << "ports of another host, PF or switch";
  EXPECT_EQ(pf.vfs[1].representor, "eth1");
}

TEST_F(ReadPfTest, DetectsLinkLayerByNetdevTypeOrRdmaPort) {
  const std::string folder = tree_.pf(8);
  tree_.netdev("0000:01:00.0", "ens1f0np0", 7, "0x1003", 32);
  EXPECT_EQ(read().linkLayer, LinkLayer::infiniband);
  tree_.file(folder + "/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  EXPECT_EQ(read().linkLayer, LinkLayer::ethernet);
  tree_.file(folder + "/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  EXPECT_EQ(read().linkLayer, LinkLayer::infiniband);
}

// OFED's files show what only the netdev of ib_ipoib shows otherwise.
TEST_F(ReadPfTest, ReadsFilesOfVfsWithoutIpoibNetdev) {
  const std::string folder = tree_.pf(8);
  tree_.vf(0);
  EXPECT_FALSE(read().hasVfFiles);
  tree_.file(folder + "/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  tree_.file(folder + "/sriov/0/port", "02:11:22:33:44:55:66:77\n");
  EXPECT_TRUE(read().hasVfFiles);
  EXPECT_FALSE(read().vfs[0].settingsReadable) << "only netlink is complete";
  tree_.remove(folder + "/net");
  EXPECT_TRUE(read().vfs[0].settingsReadable);
  EXPECT_EQ(read().vfs[0].settings.portGuid, Guid{0x0211223344556677});
}

class TwoPortCard : public ReadPfTest {
 protected:
  TwoPortCard() {
    for (const std::string address : {"0000:01:00.0", "0000:01:00.1"}) {
      tree_.function(address);
      tree_.bind(address, "mlx5_core");
      tree_.netdev(address, "port" + address.substr(11), 7);
      enslave(address);
    }
    tree_.file("sys/devices/virtual/net/bond0/bonding/slaves", "port0 port1\n");
    rdma("0000:01:00.0", "rocep1s0");
  }
  void enslave(const std::string& address, const std::string& master = "bond0") const {
    tree_.link(tree_.folderOf(address) + "/net/port" + address.substr(11) + "/master",
               "sys/devices/virtual/net/" + master);
  }
  void rdma(const std::string& address, const std::string& device) const {
    tree_.file(tree_.folderOf(address) + "/infiniband/" + device + "/ports/1/link_layer",
               "Ethernet\n");
  }
};

// rdma-core renames mlx5_bond_0, so that the name shows nothing.
TEST_F(TwoPortCard, IsLagIfBothPortsAreBelowOneBondWithOneRdmaDevice) {
  EXPECT_EQ(read().lag, (RoceLag{"bond0", "rocep1s0", pfAddress}));
  const auto second = readPfIdentity(Root(tree_.path()), {0, 1, 0, 1});
  EXPECT_EQ(second.value().lag, (RoceLag{"bond0", "rocep1s0", pfAddress}));
  tree_.remove(tree_.folderOf("0000:01:00.0") + "/infiniband");
  EXPECT_EQ(read().lag, (RoceLag{"bond0", "", std::nullopt})) << "mlx5_ib is not loaded";
}

TEST_F(TwoPortCard, IsNoLagWithAnRdmaDeviceForEachPort) {
  rdma("0000:01:00.1", "rocep1s0f1");
  EXPECT_FALSE(read().lag);
}

TEST_F(TwoPortCard, IsNoLagBelowDifferentDevices) {
  enslave("0000:01:00.1", "br0");
  EXPECT_FALSE(read().lag);
  enslave("0000:01:00.0", "br0");
  EXPECT_FALSE(read().lag) << "a bridge";
}

class SocketDirectCard : public ReadPfTest {
 protected:
  SocketDirectCard() {
    tree_.remove(tree_.pf(8) + "/net");
    tree_.file(tree_.folderOf("0000:01:00.0") + "/vpd", vpd(field("SN", "MT1")));
    tree_.function("0000:02:00.0");
    tree_.bind("0000:02:00.0", "mlx5_core");
    tree_.file(tree_.folderOf("0000:02:00.0") + "/vpd", vpd(field("SN", "MT1")));
    tree_.netdev("0000:02:00.0", "ens2np0", 8);
  }
};

TEST_F(SocketDirectCard, HasNetdevAtOnePf) {
  EXPECT_EQ(read().mainPf, (PciAddress{0, 2, 0, 0}));
  tree_.file(tree_.folderOf("0000:02:00.0") + "/vpd", vpd(field("SN", "MT2")));
  EXPECT_FALSE(read().mainPf) << "another card";
}

TEST_F(SocketDirectCard, IsNotTheCauseWhereNoPfHasNetdev) {
  tree_.remove(tree_.folderOf("0000:02:00.0") + "/net");
  EXPECT_FALSE(read().mainPf);
}

TEST_F(ReadPfTest, ReadsVfOffsetAndStride) {
  const std::string folder = tree_.pf(8);
  EXPECT_EQ(read().vfOffset, 0U) << "older kernels have no such file";
  tree_.file(folder + "/sriov_offset", "2\n");
  tree_.file(folder + "/sriov_stride", "1\n");
  EXPECT_EQ(read().vfOffset, 2U);
  EXPECT_EQ(read().vfStride, 1U);
}

TEST_F(ReadPfTest, ListsNicsOnly) {
  tree_.pf(8);
  tree_.file(tree_.function("0000:02:00.0", "0x010802") + "/sriov_totalvfs", "8\n");
  tree_.function("0000:03:00.0");  // a NIC without SR-IOV
  const std::string standIn = tree_.function("0000:04:00.0", "0x010802");
  tree_.file(standIn + "/sriov_totalvfs", "8\n");
  tree_.bind("0000:04:00.0", "mlx5_core");
  EXPECT_THAT(findPhysicalFunctions(Root(tree_.path())),
              ElementsAre(pfAddress, PciAddress{0, 4, 0, 0}));
}

std::string failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(ReadPfTest, RefusesChangesToCapturedTree) {
  tree_.pf(8);
  SystemKernel kernel(tree_.path());
  EXPECT_EQ(kernel.readPfs().size(), 1U);
  EXPECT_EQ(kernel.readPf(pfAddress).netdev(), "ens1f0np0");
  const std::string words = "0000:01:00.0: read-only: captured tree";
  EXPECT_EQ(failure([&] { kernel.createVfs({pfAddress, 1, false}); }), words);
  EXPECT_EQ(failure([&] { kernel.removeVfs({pfAddress}); }), words);
  EXPECT_EQ(failure([&] { kernel.configureVfs({pfAddress, {}}); }), words);
  EXPECT_EQ(failure([&] { kernel.bindDriver({pfAddress, "vfio-pci", ""}); }), words);
  EXPECT_EQ(failure([&] { kernel.resetFunctions({{pfAddress}}, MemoryChecks::off); }), words);
}

TEST_F(ReadPfTest, NamesMissingPf) {
  SystemKernel kernel(tree_.path());
  EXPECT_THAT(failure([&] {
                kernel.readPf({0, 9, 0, 0});
              }),
              HasSubstr("0000:09:00.0: no such PCI device"));
}

TEST_F(ReadPfTest, ReadsHostWideFacts) {
  SystemKernel kernel(tree_.path());
  EXPECT_FALSE(kernel.unsafeInterrupts());
  EXPECT_FALSE(kernel.iommuPresent());
  tree_.pf(8);
  tree_.group("0000:01:00.0", 1);
  tree_.file("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n");
  tree_.file("proc/sys/kernel/random/boot_id", "aa-bb\n");
  EXPECT_TRUE(kernel.unsafeInterrupts());
  EXPECT_TRUE(kernel.iommuPresent());
  EXPECT_EQ(kernel.bootId(), "aa-bb");
}

TEST(SystemKernelLive, ReadsThisMachine) {
  SystemKernel kernel;
  EXPECT_EQ(kernel.bootId().size(), 36U);
  EXPECT_NO_THROW(kernel.readPfs());
}

}  // namespace
}  // namespace vfpass::host
