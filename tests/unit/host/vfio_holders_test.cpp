#include "holders/holder_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include "helper/guarded_child.hpp"
#include "process_tree.hpp"
#include "vfpass/host/find_holders.hpp"

namespace vfpass::host {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* uuid = "6f1c4a52-5a2d-4a8e-8d3c-0e6a7f1b2c3d";

class ProcessHoldersTest : public testing::Test {
 protected:
  ProcessHoldersTest() : root_(tree_.path()) {
    tree_.pf(8);
    for (unsigned index = 0; index < 3; ++index) {
      tree_.group(tree_.vf(index), 10 + index);
    }
    tree_.bind("0000:01:00.1", "vfio-pci");
  }
  std::vector<Holder> find(const PciAddress& function) {
    return processHolders(root_, *readFunctionFacts(root_, function), readProcesses(root_));
  }

  ProcessTree tree_;
  Root root_;
  PciAddress vf_{0, 1, 0, 1};
  PciAddress other_{0, 1, 0, 2};
};

TEST_F(ProcessHoldersTest, NamesProcessAndDomain) {
  tree_.process("4711", "qemu-system-x86");
  tree_.open("4711", "30", "/dev/vfio/10");
  tree_.open("4711", "31", "/dev/vfio/vfio");
  tree_.commandLine("4711",
                    {"qemu", "-name", "guest=train0,debug-threads=on", "-uuid", uuid, "-S"});
  const auto holders = find(vf_);
  ASSERT_THAT(holders, SizeIs(1));
  EXPECT_EQ(holders[0].kind, HolderKind::vfio);
  EXPECT_EQ(holders[0].device, vf_);
  EXPECT_EQ(holders[0].description,
            "qemu-system-x86 (pid 4711) of domain train0 has it open through VFIO");
  EXPECT_EQ(holders[0].domain, parseUuid(uuid));
  EXPECT_THAT(find(other_), IsEmpty());
}

TEST_F(ProcessHoldersTest, RecognizesEveryVfioFileOfFunction) {
  tree_.file(tree_.folderOf("0000:01:00.1") + "/vfio-dev/vfio3/dev", "511:3\n");
  const std::vector<std::string> files{"/dev/vfio/10", "/dev/vfio/noiommu-10",
                                       "/dev/vfio/devices/vfio3", "/dev/vfio/10 (deleted)"};
  int process = 100;
  for (const std::string& file : files) {
    tree_.process(std::to_string(++process), "dpdk");
    tree_.open(std::to_string(process), "5", file);
  }
  for (const char* file : {"/dev/vfio/1", "/dev/vfio/100", "/dev/vfio/devices/vfio30",
                           "/dev/vfio/noiommu-1", "/dev/vfio/vfio"}) {
    tree_.process(std::to_string(++process), "dpdk");
    tree_.open(std::to_string(process), "5", file);
  }
  EXPECT_THAT(find(vf_),
              AllOf(SizeIs(files.size()), Each(Field(&Holder::domain, std::optional<Uuid>()))));
}

TEST_F(ProcessHoldersTest, ReportsHolderForEveryFunctionOfGroup) {
  tree_.group("0000:01:00.3", 10);
  tree_.process("50", "qemu");
  tree_.open("50", "5", "/dev/vfio/10");
  EXPECT_THAT(find(vf_), SizeIs(1));
  EXPECT_THAT(find({0, 1, 0, 3}), SizeIs(1));
}

TEST_F(ProcessHoldersTest, NamesEveryProcessInBoundedPrintableText) {
  for (int process = 100; process < 140; ++process) {
    const std::string id = std::to_string(process);
    tree_.process(id, "q\x1b[2J");
    tree_.open(id, "5", "/dev/vfio/10");
    tree_.commandLine(id, {"q", "-name", "guest=\x1b]0;x\x07" + std::string(70000, 'A')});
  }
  const auto holders = find(vf_);
  EXPECT_THAT(holders, SizeIs(40));
  for (const Holder& holder : holders) {
    EXPECT_LT(holder.description.size(), 1000U);
    EXPECT_EQ(holder.description.find_first_of("\x1b\x07\n"), std::string::npos);
  }
}

TEST_F(ProcessHoldersTest, ReportsPendingWriteToFunction) {
  tree_.pendingCall("60", taskName(vf_));
  EXPECT_THAT(find(vf_),
              ElementsAre(AllOf(Field(&Holder::kind, HolderKind::pendingWrite),
                                Field(&Holder::description,
                                      "an earlier vfpass write to it is still pending in the "
                                      "kernel (pid 60)"))));
  EXPECT_THAT(find(other_), IsEmpty());
}

// A removal that hangs affects every VF of the PF.
TEST_F(ProcessHoldersTest, ReportsPendingWriteToPf) {
  tree_.pendingCall("60", taskName({0, 1, 0, 0}));
  EXPECT_THAT(find(vf_), ElementsAre(Field(&Holder::description, HasSubstr("write to its PF"))));
  EXPECT_THAT(find({0, 1, 0, 0}), SizeIs(1));
}

// Any user can start a program of root, such as su, by any name.
TEST_F(ProcessHoldersTest, IgnoresProgramWithNameOfHelper) {
  tree_.process("60", taskName(vf_));
  tree_.open("60", "3", "/memfd:" + taskName(other_) + " (deleted)");
  tree_.open("60", "4", "/tmp/memfd:" + taskName(vf_) + " (deleted)");
  tree_.process("61", "vfpass-guarded");
  EXPECT_THAT(find(vf_), IsEmpty());
  EXPECT_THAT(find(other_), IsEmpty());
}

TEST_F(ProcessHoldersTest, ReportsHiddenProcesses) {
  tree_.remove("proc/1");
  EXPECT_THAT(find(vf_), ElementsAre(AllOf(
                             Field(&Holder::kind, HolderKind::unknown),
                             Field(&Holder::description, HasSubstr("processes of other users")))));
}

// Any user can run such a process. The kernel knows the users of VFIO and of a NIC, and nothing
// uses a function without a driver.
TEST_F(ProcessHoldersTest, ReportsUnreadProcessesOnlyWhereTheKernelNamesNoUsers) {
  ProcessList list;
  list.unread = "cannot see what a (pid 7) has open: too many descriptors to read them all in time";
  EXPECT_THAT(processHolders(root_, *readFunctionFacts(root_, vf_), list), IsEmpty());
  EXPECT_THAT(processHolders(root_, *readFunctionFacts(root_, other_), list), IsEmpty());
  tree_.bind("0000:01:00.2", "mlx5_core");
  EXPECT_THAT(processHolders(root_, *readFunctionFacts(root_, other_), list), IsEmpty());
  tree_.function("0000:01:00.7", "0x030200");
  EXPECT_THAT(processHolders(root_, *readFunctionFacts(root_, {0, 1, 0, 7}), list), IsEmpty());
  tree_.bind("0000:01:00.7", "nvidia");
  EXPECT_THAT(processHolders(root_, *readFunctionFacts(root_, {0, 1, 0, 7}), list),
              ElementsAre(AllOf(Field(&Holder::kind, HolderKind::unknown),
                                Field(&Holder::description, list.unread))));
}

TEST(DeviceFile, IsComparedByNumberOnLiveSystem) {
  const DeviceFile group{"/dev/vfio/9", makedev(240, 0)};
  EXPECT_TRUE(isSame({"fd/3", "/tmp/x", makedev(240, 0), false}, group));
  EXPECT_FALSE(isSame({"fd/3", "/dev/vfio/9", makedev(1, 3), false}, group));
  EXPECT_FALSE(isSame({"fd/3", "/dev/vfio/9", makedev(240, 0), true}, group));
  EXPECT_FALSE(isSame({"fd/3", "/dev/vfio/9", makedev(1, 3), false}, {"/dev/vfio/9", {}}));
  EXPECT_TRUE(isSame({"fd/3", "/dev/vfio/9", std::nullopt, false}, group));
}

TEST_F(ProcessHoldersTest, ReportsMountedOpenAndBackingDisks) {
  tree_.function("0000:01:00.7", "0x010802");
  tree_.bind("0000:01:00.7", "nvme");
  tree_.block("0000:01:00.7", "nvme0n1", "259:0");
  tree_.partition("0000:01:00.7", "nvme0n1", "nvme0n1p1", "259:1");
  tree_.process("80", "postgres", ourNetwork, 777);
  tree_.file("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  tree_.file("proc/80/mountinfo", "30 1 259:1 / /data rw - xfs /dev/nvme0n1p1 rw\n");
  tree_.process("81", "dd");
  tree_.open("81", "3", "/dev/nvme0n1");
  tree_.file("sys/block/loop3/loop/backing_file", "/dev/nvme0n1p1\n");
  const auto function = *readFunctionFacts(root_, {0, 1, 0, 7});
  auto processes = readProcesses(root_).processes;
  // A container may have the disk under any name.
  processes.push_back({"82",
                       "fio",
                       ourNetwork,
                       ourMounts,
                       {{"4", "/dev/xvdf", makedev(259, 0), true},
                        {"5", "/dev/console2", makedev(259, 0), false}}});
  std::vector<std::string> descriptions;
  for (const Holder& holder :
       blockHolders(root_, function, MountTable(root_, processes), processes)) {
    EXPECT_EQ(holder.kind, HolderKind::block);
    descriptions.push_back(holder.description);
  }
  EXPECT_THAT(
      descriptions,
      testing::UnorderedElementsAre(
          "its disk nvme0n1 is open in dd (pid 81)", "its disk nvme0n1 is open in fio (pid 82)",
          "its disk nvme0n1p1 is mounted at /data in the mount namespace of postgres (pid "
          "80)",
          "its disk nvme0n1p1 backs loop3"));
}

TEST_F(ProcessHoldersTest, ReportsMountsInTheNamespaceOfAThread) {
  tree_.process("80", "backup");
  tree_.file("proc/80/task/81/mountinfo", "30 1 259:0 / /data rw - xfs /dev/nvme0n1 rw\n");
  tree_.raw("proc/80/task/81/ns/mnt", "mnt:[778]");
  Process process{"80", "backup", ourNetwork, ourMounts, {}};
  process.threads.push_back({"80/task/81", {ourNetwork, 778}});
  const MountTable mounts(root_, {process});
  EXPECT_THAT(mounts.mountsOf({"259:0", "/dev/nvme0n1"}),
              ElementsAre(testing::AllOf(Field(&MountPoint::path, "/data"),
                                         Field(&MountPoint::owner, "backup (pid 80)"))));
}

TEST_F(ProcessHoldersTest, FindsProcessesWithOpenRdmaFiles) {
  tree_.file("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_3\n");
  tree_.file("sys/class/infiniband_verbs/uverbs1/ibdev", "mlx5_4\n");
  tree_.file("sys/class/infiniband_mad/umad0/ibdev", "mlx5_3\n");
  tree_.process("90", "python3");
  tree_.open("90", "3", "/dev/infiniband/uverbs0");
  tree_.process("91", "opensm");
  tree_.open("91", "3", "/dev/infiniband/umad0");
  tree_.process("92", "other");
  tree_.open("92", "3", "/dev/infiniband/uverbs1");
  EXPECT_THAT(processesWithDeviceFiles(root_, "mlx5_3", readProcesses(root_).processes),
              ElementsAre(Field(&Process::id, "90"), Field(&Process::id, "91")));
}

TEST_F(ProcessHoldersTest, FindsProcessesWithOpenGpuFiles) {
  const std::string folder = tree_.function("0000:01:00.6", "0x030200");
  tree_.file(folder + "/drm/card1/dev", "226:1\n");
  tree_.link("sys/dev/char/226:1", folder + "/drm/card1");
  tree_.file("proc/driver/nvidia/gpus/0000:01:00.6/information",
             "Model: \t\t H200\nDevice Minor: \t 3\nGPU Excluded:\t No\n");
  const std::vector<Process> processes{
      {"5",
       "nvidia-persiste",
       ourNetwork,
       ourMounts,
       {{"3", "/dev/nvidia3", makedev(195, 3), false}}},
      {"6",
       "Xorg",
       ourNetwork,
       ourMounts,
       {{"3", "/dev/dri/card1", makedev(226, 1), false},
        {"4", "/dev/nvidiactl", makedev(195, 255), false}}},
      {"7", "dd", ourNetwork, ourMounts, {{"3", "/dev/sdq", makedev(195, 3), true}}}};
  tree_.bind("0000:01:00.6", "nvidia");
  const auto gpu = *readFunctionFacts(root_, {0, 1, 0, 6});
  const auto holders = deviceFileHolders(root_, {*readFunctionFacts(root_, vf_), gpu}, processes);
  EXPECT_THAT(holders, ElementsAre(Field(&Holder::description,
                                         "the persistence daemon nvidia-persiste (pid 5) has its "
                                         "device file /dev/nvidia3 open"),
                                   Field(&Holder::description,
                                         "the display server Xorg (pid 6) has its device file "
                                         "/dev/dri/card1 open")));
  EXPECT_THAT(holders, Each(AllOf(Field(&Holder::device, gpu.address),
                                  Field(&Holder::kind, HolderKind::gpu))));
}

TEST_F(ProcessHoldersTest, ReadsFactsOfFunction) {
  tree_.bind("0000:01:00.2", "mlx5_core");
  const std::string folder = tree_.folderOf("0000:01:00.2");
  tree_.file(folder + "/infiniband/mlx5_3/node_guid", "");
  tree_.link("sys/class/infiniband/mlx5_3", folder + "/infiniband/mlx5_3");
  tree_.file(folder + "/mlx5_core.eth.2/vdpa7/driver_override", "");
  tree_.link("sys/bus/vdpa/devices/vdpa7", folder + "/mlx5_core.eth.2/vdpa7");
  const auto function = readFunctionFacts(root_, other_);
  ASSERT_TRUE(function);
  EXPECT_EQ(function->physicalFunction, (PciAddress{0, 1, 0, 0}));
  EXPECT_TRUE(function->isNetwork);
  EXPECT_EQ(function->rdmaDevice(), "mlx5_3");
  EXPECT_EQ(function->rdma.size(), 1U);
  EXPECT_THAT(function->virtualDevices, ElementsAre("vDPA device vdpa7"));
  EXPECT_FALSE(isDriven(*readFunctionFacts(root_, vf_)));
  EXPECT_EQ(readFunctionFacts(root_, {0, 9, 0, 0}), std::nullopt);
}

TEST_F(ProcessHoldersTest, SnapshotsHaveNoHolders) {
  tree_.process("60", taskName(vf_));
  EXPECT_THAT(findHolders(root_, {vf_}, std::chrono::milliseconds(1000)), IsEmpty());
}

TEST(FindHolders, ReportsNoHoldersOfMissingFunction) {
  EXPECT_THAT(findHolders(Root(), {{0xffff, 0xff, 0x1f, 7}}, std::chrono::milliseconds(5000)),
              IsEmpty());
}

// Debian's kernel, and one with CONFIG_IOMMUFD_VFIO_CONTAINER: the latter has /dev/vfio/vfio, too.
TEST(HasContainers, AreThoseOfType1) {
  const hosts::SysfsTree tree;
  const auto has = [&] { return hasContainers(Root(tree.path())); };
  tree.file("sys/module/vfio/refcnt", "0\n");
  tree.file("sys/class/misc/vfio/dev", "10:196\n");
  tree.file("sys/class/misc/iommu/dev", "10:124\n");
  EXPECT_EQ(has(), std::nullopt) << "no list of modules: not known";
  tree.file("proc/sys/kernel/osrelease", "7.2.12\n");
  tree.file("lib/modules/7.2.12/modules.dep", "kernel/drivers/vfio/vfio.ko.xz:\n");
  tree.file("lib/modules/7.2.12/modules.builtin", "kernel/drivers/iommu/iommufd/iommufd.ko\n");
  EXPECT_EQ(has(), false);
  for (const char* list : {"modules.dep", "modules.builtin"}) {
    const std::string path = std::string("lib/modules/7.2.12/") + list;
    tree.file(path, "kernel/drivers/vfio/vfio_iommu_type1.ko\n");
    EXPECT_EQ(has(), true) << list << ": loaded on demand, or built in";
    tree.file(path, "");
  }
  tree.remove("sys/module/vfio");
  EXPECT_EQ(has(), std::nullopt) << "a kernel without VFIO";
  tree.file("lib/modules/7.2.12/modules.builtin", "kernel/drivers/vfio/vfio.ko\n");
  EXPECT_EQ(has(), false) << "before VFIO is loaded";
  tree.file("sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "65535\n");
  EXPECT_EQ(has(), true);
}

}  // namespace
}  // namespace vfpass::host
