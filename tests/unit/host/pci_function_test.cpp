#include "vfpass/host/pci_function.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holders/holder_kinds.hpp"
#include "holders/mount_table.hpp"
#include "hosts/sysfs_tree.hpp"

namespace vfpass::host {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr PciAddress gpuAddress{0, 2, 0, 0};
const std::string gpuName = "0000:02:00.0";

class ReadFunctionTest : public testing::Test {
 protected:
  ReadFunctionTest() { folder_ = tree_.function(gpuName, "0x030200"); }

  Device read() { return readPciFunction(Root(tree_.path()), gpuAddress).value(); }

  // A disk below the function, with one partition.
  void disk() {
    tree_.block(gpuName, "sda", "8:0");
    tree_.partition(gpuName, "sda", "sda1", "8:1");
  }
  void mountinfo(const std::string& lines) { tree_.file("proc/self/mountinfo", lines); }

  hosts::SysfsTree tree_;
  std::string folder_;
};

TEST_F(ReadFunctionTest, ReturnsNothingForMissingFunction) {
  EXPECT_FALSE(readPciFunction(Root(tree_.path()), {0, 9, 0, 0}));
}

TEST_F(ReadFunctionTest, ReadsFunction) {
  tree_.file(folder_ + "/numa_node", "1\n");
  tree_.file(folder_ + "/driver_override", "vfio-pci\n");
  tree_.bind(gpuName, "vfio-pci");
  tree_.netdev(gpuName, "eth4", 4, "0x1003");
  tree_.group(gpuName, 12);
  tree_.function("0000:02:00.1", "0x040300");
  tree_.bind("0000:02:00.1", "snd_hda_intel");
  tree_.group("0000:02:00.1", 12);
  const auto function = read();
  EXPECT_EQ(function.address, gpuAddress);
  EXPECT_EQ(function.path, "pci0000:00/0000:00:01.0/0000:02:00.0");
  EXPECT_EQ(function.vendor, 0x15b3);
  EXPECT_EQ(function.device, 0x101d);
  EXPECT_EQ(function.classCode, 0x030200U);
  EXPECT_EQ(function.driver, "vfio-pci");
  EXPECT_EQ(function.driverOverride, "vfio-pci");
  EXPECT_EQ(function.iommuGroup, 12U);
  EXPECT_THAT(function.groupPeers, ElementsAre(GroupPeer{{0, 2, 0, 1}, 0x040300, "snd_hda_intel"}));
  ASSERT_THAT(function.netdevs, SizeIs(1));
  EXPECT_TRUE(function.netdevs[0].up);
  EXPECT_EQ(function.numaNode, 1);
  EXPECT_FALSE(function.bootVga);
  EXPECT_FALSE(function.vfioInUse);
  EXPECT_FALSE(function.physicalFunction);
  EXPECT_FALSE(isBridge(function));
}

TEST_F(ReadFunctionTest, ReadsOnlyWhatIsWanted) {
  tree_.bind(gpuName, "mlx5_core");
  tree_.netdev(gpuName, "eth4", 4, "0x1003");
  Recording recording(tree_.path());
  Root root(tree_.path());
  root.recordInto(recording);
  Device device;
  readDevice(Folder(root, functionPath(gpuAddress)), {.ids = true, .ports = Ports::names}, device);
  EXPECT_EQ(device.driver, "mlx5_core");
  EXPECT_EQ(device.classCode, 0x030200U);
  EXPECT_EQ(device.netdev(), "eth4");
  EXPECT_EQ(device.uplink().index, 0);
  EXPECT_TRUE(recording.entries().contains(folder_ + "/vendor"));
  for (const char* file : {"/numa_node", "/net/eth4/ifindex", "/subsystem_vendor"}) {
    EXPECT_FALSE(recording.entries().contains(folder_ + file)) << file;
  }
}

TEST_F(ReadFunctionTest, RecognizesBridgesDisplaysPfsAndVfs) {
  tree_.file(folder_ + "/boot_vga", "1\n");
  EXPECT_TRUE(read().bootVga);
  tree_.file(folder_ + "/class", "0x060400\n");
  EXPECT_TRUE(isBridge(read()));
  tree_.file(folder_ + "/class", "0x068000\n");
  EXPECT_TRUE(isBridge(read()));
  tree_.file(folder_ + "/vendor", "0x10de\n");
  EXPECT_FALSE(isBridge(read())) << "an NVSwitch";
  tree_.pf(8);
  tree_.vf(0);
  tree_.vf(1);
  const Root root(tree_.path());
  EXPECT_EQ(readPciFunction(root, {0, 1, 0, 0})->vfCount, 2U);
  EXPECT_EQ(readPciFunction(root, {0, 1, 0, 2})->physicalFunction, (PciAddress{0, 1, 0, 0}));
}

TEST_F(ReadFunctionTest, ReportsNoUseOfIdleBlockDevice) {
  disk();
  mountinfo("20 1 8:16 / / rw - ext4 /dev/sdb rw\n");
  tree_.file("proc/swaps", "Filename Type Size Used Priority\n/dev/sdb2 partition 1 0 -2\n");
  EXPECT_THAT(read().uses, IsEmpty());
}

TEST_F(ReadFunctionTest, FindsMountsByNumberAndSource) {
  disk();
  mountinfo(
      "20 1 8:1 / /data\\040one rw,relatime shared:1 - ext4 /dev/root rw\n"
      "21 1 0:42 /sub /pool rw - btrfs /dev/sda rw,space_cache\n"
      "22 1 8:10 / /other rw - ext4 /dev/sda10 rw\n");
  EXPECT_THAT(read().uses,
              ElementsAre("sda is mounted at /pool", "sda1 is mounted at /data\\040one"));
}

TEST_F(ReadFunctionTest, ReportsSwapAndBlockHolders) {
  disk();
  tree_.file("proc/swaps", "Filename Type\n/dev/sda1                partition 1 0 -2\n");
  tree_.file(tree_.blockFolder(gpuName, "sda") + "/holders/dm-0", "");
  EXPECT_THAT(read().uses, ElementsAre("sda is part of dm-0", "sda1 is swap space"));
}

TEST_F(ReadFunctionTest, IgnoresDisksOfOtherFunctions) {
  tree_.function("0000:02:00.1", "0x010802");
  tree_.block("0000:02:00.1", "sdb", "8:16");
  mountinfo("20 1 8:16 / / rw - ext4 /dev/sdb rw\n");
  EXPECT_THAT(read().uses, IsEmpty());
}

TEST_F(ReadFunctionTest, FindsMultipathNvmeBelowSubsystem) {
  const std::string subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
  tree_.file(folder_ + "/nvme/nvme0/cntlid", "0\n");
  tree_.link(subsystem + "/nvme0", folder_ + "/nvme/nvme0");
  tree_.link("sys/class/nvme-subsystem/nvme-subsys0", subsystem);
  tree_.file(subsystem + "/nvme0n1/dev", "259:0\n");
  tree_.link("sys/block/nvme0n1", subsystem + "/nvme0n1");
  mountinfo("20 1 259:0 / /data rw - xfs /dev/nvme0n1 rw\n");
  EXPECT_THAT(read().uses, ElementsAre("nvme0n1 is mounted at /data"));
}

TEST_F(ReadFunctionTest, BoundsUsesAndMakesThemPrintable) {
  disk();
  std::string lines;
  for (int i = 0; i < 100; ++i) {
    lines += "20 1 8:1 / /\x1b[2J" + std::string(1000, 'x') + " rw - ext4 /dev/sda1 rw\n";
  }
  mountinfo(lines);
  const auto uses = read().uses;
  EXPECT_THAT(uses, SizeIs(16));
  EXPECT_THAT(uses, Each(testing::Truly([](const std::string& use) {
                return use.size() < 400 && use.find('\x1b') == std::string::npos;
              })));
}

TEST_F(ReadFunctionTest, ReadsMountTablesOfAnyLength) {
  disk();
  const std::string line = "20 1 8:16 / /" + std::string(1000, 'x') + " rw - ext4 /dev/sdb rw\n";
  std::string lines;
  for (int i = 0; i < 20000; ++i) {
    lines += line;
  }
  mountinfo(lines);
  EXPECT_THAT(read().uses, IsEmpty());
  mountinfo(lines + "21 1 8:1 / /data rw - ext4 /dev/sda1 rw\n");
  EXPECT_THAT(read().uses, ElementsAre("sda1 is mounted at /data"));
}

// fusermount mounts in the host's namespace for any user, with any source.
TEST_F(ReadFunctionTest, IgnoresSourcesThatUsersChoose) {
  disk();
  mountinfo(
      "20 1 0:50 / /home/mallory/x rw - fuse /dev/sda rw,user_id=1000\n"
      "21 1 0:51 / /home/mallory/y rw - fuse.btrfs /dev/sda1 rw,user_id=1000\n"
      "22 1 8:16 / / rw - ext4 /dev/sda rw\n");
  EXPECT_THAT(read().uses, IsEmpty());
  mountinfo("20 1 0:52 / /pool rw - bcachefs /dev/sdb:/dev/sda1 rw\n");
  EXPECT_THAT(read().uses, ElementsAre("sda1 is mounted at /pool"));
}

TEST_F(ReadFunctionTest, ReportsClaimedDiskWhenMountTableIsUnreadable) {
  disk();
  mountinfo(std::string(3U << 20U, 'x') + "\n");
  EXPECT_THAT(read().uses, ElementsAre(HasSubstr("cannot read all mount tables")));
}

TEST_F(ReadFunctionTest, IgnoresDisksBelowBridge) {
  tree_.file(folder_ + "/class", "0x060400\n");
  disk();
  mountinfo("20 1 8:0 / / rw - ext4 /dev/sda rw\n");
  EXPECT_THAT(read().uses, IsEmpty());
}

TEST(MountTable, ToleratesMalformedTables) {
  const hosts::SysfsTree tree;
  tree.file("proc/self/mountinfo", "\n - \n1\n1 2 8:1\n1 2 8:2 - - -\n");
  tree.file("proc/swaps", "\n \n");
  const MountTable table(Root(tree.path()));
  EXPECT_THAT(table.mountsOf({"8:1", "/dev/sda1"}),
              ElementsAre(testing::Field(&MountPoint::path, "")));
  EXPECT_THAT(table.mountsOf({"", "/dev/sda1"}), IsEmpty());
  EXPECT_FALSE(table.isSwap("/dev/sda1"));
}

}  // namespace

}  // namespace vfpass::host
