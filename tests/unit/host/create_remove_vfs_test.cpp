#include "sriov/pf_and_vfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulated_kernel.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/kernel_log.hpp"
#include "vfpass/host/pci_function.hpp"
#include "vfpass/host/system_kernel.hpp"
#include "vfpass/kernel.hpp"

namespace vfpass::host {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::chrono::milliseconds vfCountDeadline{50};

class VfCountTest : public testing::Test {
 protected:
  VfCountTest() : root_(tree_.path()), kernel_(tree_) { tree_.pf(6); }

  std::vector<std::string> create(unsigned count, bool probe = false) {
    return createVfs(root_, kernel_, {pf_, count, probe}, vfCountDeadline, vfCountDeadline);
  }
  std::string failure(const std::function<void()>& change) {
    try {
      change();
    } catch (const Error& error) {
      code_ = error.code();
      remedy_ = error.remedy();
      return error.what();
    }
    return "no error";
  }
  void remove(RemoveScope scope = RemoveScope::present) {
    removeVfs(root_, kernel_, readPhysicalFunctions(root_, {pf_}, vfCountDeadline).at(0), holders_,
              scope, vfCountDeadline);
  }
  std::size_t count() { return readVfLinks(root_, pf_).size(); }
  std::string autoprobe() {
    return tree_.content(tree_.folderOf("0000:01:00.0") + "/sriov_drivers_autoprobe");
  }

  hosts::SysfsTree tree_;
  Root root_;
  SimulatedKernel kernel_;
  PciAddress pf_{0, 1, 0, 0};
  std::vector<Holder> holders_;
  ExitCode code_ = ExitCode::done;
  std::string remedy_;
};

TEST_F(VfCountTest, InverseOfRemovalKeepsExistingVfs) {
  create(4, true);
  createVfs(root_, kernel_, {pf_, 4, false, true}, vfCountDeadline, vfCountDeadline);
  EXPECT_EQ(count(), 4U);
  EXPECT_EQ(autoprobe(), "1");
}

TEST_F(VfCountTest, InverseOfRemovalRestoresAutoprobe) {
  createVfs(root_, kernel_, {pf_, 4, true, false}, vfCountDeadline, vfCountDeadline);
  EXPECT_EQ(count(), 4U);
  EXPECT_EQ(autoprobe(), "0");
}

TEST_F(VfCountTest, CreatesWithoutProbingAndRestoresAutoprobe) {
  create(4);
  EXPECT_EQ(count(), 4U);
  EXPECT_THAT(kernel_.log, ElementsAre("sriov_drivers_autoprobe=0", "sriov_numvfs=4",
                                       "sriov_drivers_autoprobe=1"));
}

TEST_F(VfCountTest, RemovesVfsInFlightBeforeAnyExists) {
  remove();
  EXPECT_TRUE(kernel_.log.empty());
  remove(RemoveScope::inFlight);
  EXPECT_THAT(kernel_.log, ElementsAre("sriov_numvfs=0"));
}

TEST_F(VfCountTest, KeepsAutoprobeWhenItMatches) {
  create(4, true);
  EXPECT_THAT(kernel_.log, ElementsAre("sriov_numvfs=4"));
}

TEST_F(VfCountTest, RestoresAutoprobeWhenCreationFails) {
  kernel_.fileErrors["sriov_numvfs"] = EIO;
  EXPECT_THROW(create(4), Error);
  EXPECT_EQ(autoprobe(), "1");
}

// VFs that are created late must not be probed (pci_device_can_probe reads the setting for each
// VF).
TEST_F(VfCountTest, KeepsAutoprobeOffWhileCreationIsPending) {
  kernel_.hangs = "sriov_numvfs";
  EXPECT_THAT(failure([&] { create(4); }), HasSubstr("sriov_drivers_autoprobe stays at 0"));
  EXPECT_THROW(create(4), TimeoutError);
  EXPECT_EQ(autoprobe(), "0");
}

Holder holderOf(const PciAddress& device, HolderKind kind) {
  return {kind, device, "its netdev eth1 is in network namespace blue", "", std::nullopt};
}

TEST_F(VfCountTest, RefusesToRemoveHeldVfs) {
  tree_.vf(0);
  for (const HolderKind kind : holderKinds) {
    holders_ = {holderOf({0, 1, 0, 1}, kind)};
    if (kind == HolderKind::unknown) {
      continue;
    }
    EXPECT_THAT(failure([&] { remove(); }), HasSubstr("eth1 is in network namespace blue"));
    EXPECT_EQ(code_, ExitCode::refused);
  }
  EXPECT_EQ(count(), 1U);
}

TEST_F(VfCountTest, IgnoresUnknownHolders) {
  tree_.vf(0);
  holders_ = {holderOf({0, 1, 0, 1}, HolderKind::unknown)};
  remove();
  EXPECT_EQ(count(), 0U);
}

TEST_F(VfCountTest, RemovesVfsWithPendingCreation) {
  tree_.vf(0);
  holders_ = {holderOf({0, 1, 0, 1}, HolderKind::pendingWrite)};
  remove(RemoveScope::inFlight);
  EXPECT_EQ(count(), 0U);
}

TEST_F(VfCountTest, RefusesUnsupportedCount) {
  EXPECT_THAT(failure([&] { create(7); }),
              AllOf(HasSubstr("7 VFs"), HasSubstr("1 to 6"), HasSubstr("ERANGE")));
  EXPECT_THAT(failure([&] { create(0); }), HasSubstr("0 VFs"));
  EXPECT_TRUE(kernel_.log.empty());
}

TEST_F(VfCountTest, RefusesToChangeExistingVfs) {
  tree_.vf(0);
  EXPECT_THAT(failure([&] { create(4); }), HasSubstr("already has 1 VF"));
  EXPECT_TRUE(kernel_.log.empty());
}

TEST_F(VfCountTest, RefusesDeviceWithoutSriov) {
  tree_.remove(tree_.folderOf("0000:01:00.0") + "/sriov_totalvfs");
  EXPECT_THAT(failure([&] { create(1); }), HasSubstr("SR-IOV is disabled or not supported"));
}

TEST_F(VfCountTest, RemovesVfsWhenTooFewAppear) {
  kernel_.appearing = 2;
  EXPECT_THAT(failure([&] { create(4); }), AllOf(HasSubstr("4 VFs"), HasSubstr("only 2 VFs")));
  EXPECT_EQ(count(), 0U);
  EXPECT_EQ(kernel_.log.back(), "sriov_numvfs=0");
}

// mlx5_device_enable_sriov() only warns, and the write to sriov_numvfs succeeds.
TEST_F(VfCountTest, RemovesVfsThatTheFirmwareHasNotEnabled) {
  const std::string record =
      "4,812,5,-;mlx5_core 0000:01:00.0: mlx5_device_enable_sriov:86:(pid "
      "77): failed to enable VF ";
  tree_.file("dev/kmsg", record + "3 (-5)\n");
  create(4);
  remove();
  kernel_.logged = record + "1 (-5)\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n";
  EXPECT_THAT(failure([&] { create(4); }),
              AllOf(HasSubstr("4 VFs"), HasSubstr("did not enable one"),
                    HasSubstr("the kernel log: mlx5_device_enable_sriov:86:(pid 77): failed to "
                              "enable VF 1 (-5)")));
  EXPECT_THAT(remedy_, HasSubstr("virtual-function-count"));
  EXPECT_EQ(count(), 0U);
  EXPECT_EQ(autoprobe(), "1");
  EXPECT_THAT(failure([&] { create(1); }),
              HasSubstr("did not enable it, and it was removed again"));
}

TEST_F(VfCountTest, IgnoresWhatTheKernelLogsAboutOtherCards) {
  tree_.file("dev/kmsg", "");
  kernel_.logged =
      "4,812,5,-;mlx5_core 0000:02:00.0: failed to enable VF 1 (-5)\n"
      "12,813,5,-;mlx5_core 0000:01:00.0: failed to enable VF 1 (-5), writes a program\n";
  create(4);
  EXPECT_EQ(count(), 4U);
}

// vfpass then cannot see VFs that the firmware has not enabled.
TEST_F(VfCountTest, WarnsIfTheKernelLogCannotBeRead) {
  EXPECT_THAT(create(4), ElementsAre(AllOf(HasSubstr("0000:01:00.0: it is not known whether"),
                                           HasSubstr("kernel log cannot be read"))));
  EXPECT_EQ(count(), 4U);
  remove();
  tree_.file("dev/kmsg", "");
  EXPECT_THAT(create(4), IsEmpty());
}

TEST_F(VfCountTest, KernelLogThatADriverFillsWithoutEndIsNotComplete) {
  tree_.file("dev/kmsg", "");
  KernelLog log(root_);
  EXPECT_THAT(log.messagesAbout(pf_), IsEmpty());
  EXPECT_TRUE(log.isComplete());
  // More than 10,000 records of 8 KiB.
  std::filesystem::resize_file(tree_.path() / "dev/kmsg", 10000ULL * 8192 + 1);
  EXPECT_THAT(log.messagesAbout(pf_), IsEmpty());
  EXPECT_FALSE(log.isComplete());
}

TEST_F(VfCountTest, DoesNotMissTheKernelLogOfOtherDrivers) {
  tree_.remove(tree_.folderOf("0000:01:00.0") + "/driver");
  tree_.bind("0000:01:00.0", "ice");
  EXPECT_THAT(create(4), IsEmpty());
}

TEST_F(VfCountTest, QuotesWhatTheKernelLoggedAboutTheRefusal) {
  tree_.file("dev/kmsg", "4,1,1,-;mlx5_core 0000:01:00.0: old\n");
  kernel_.fileErrors["sriov_numvfs"] = ENOMEM;
  kernel_.logged =
      "3,2,2,-;mlx5_core 0000:01:00.0: not enough MMIO resources for SR-IOV\n"
      "4,3,3,-;mlx5_core 0000:01:00.0: \x1b[31mpci_enable_sriov failed : -12\n";
  EXPECT_EQ(failure([&] { create(1); }),
            "0000:01:00.0: cannot create 1 VF: " + errnoText(ENOMEM) +
                "; the kernel log: not enough MMIO resources for SR-IOV; " +
                printable("\x1b[31mpci_enable_sriov failed : -12"));
}

TEST_F(VfCountTest, ReportsBusyDriverAndMissingDriver) {
  kernel_.fileErrors["sriov_numvfs"] = EBUSY;
  EXPECT_THAT(failure([&] { create(1); }), HasSubstr("driver is busy"));
  tree_.remove(tree_.folderOf("0000:01:00.0") + "/driver");
  kernel_.fileErrors["sriov_numvfs"] = ENOENT;
  EXPECT_THAT(failure([&] { create(1); }), HasSubstr("no driver with SR-IOV support is bound"));
}

TEST_F(VfCountTest, NamesDriverThatTakesNoCountFromSysfs) {
  tree_.remove(tree_.folderOf("0000:01:00.0") + "/driver");
  tree_.bind("0000:01:00.0", "mlx4_core");
  kernel_.fileErrors["sriov_numvfs"] = ENOENT;
  EXPECT_THAT(failure([&] { create(1); }), HasSubstr("mlx4_core does not take the count"));
  EXPECT_THAT(remedy_, HasSubstr("num_vfs"));
}

// One errno has several causes, which only the kernel log distinguishes (sriov_enable).
TEST_F(VfCountTest, PointsToTheKernelLogInsteadOfGuessingACause) {
  const std::string log = "`dmesg | grep 0000:01:00.0`";
  const std::map<int, std::string> expected{{ENOMEM, "not enough MMIO resources for SR-IOV"},
                                            {ENOSPC, "MSI-X"},
                                            {EAGAIN, "fewer VFs"},
                                            {EINVAL, "power-cycle"},
                                            {EIO, "power-cycle"}};
  for (const auto& [error, words] : expected) {
    kernel_.fileErrors["sriov_numvfs"] = error;
    EXPECT_EQ(failure([&] { create(4); }),
              "0000:01:00.0: cannot create 4 VFs: " + errnoText(error));
    EXPECT_THAT(remedy_, AllOf(HasSubstr(log), HasSubstr(words)));
  }
  kernel_.fileErrors["sriov_numvfs"] = ENOMEM;
  EXPECT_THAT(failure([&] { create(1); }), HasSubstr("cannot create 1 VF: Cannot allocate"));
  EXPECT_THAT(remedy_, AllOf(HasSubstr("Above 4G Decoding"), HasSubstr("pci=realloc lets"),
                             HasSubstr("out of range"), HasSubstr("pci=assign-busses"),
                             HasSubstr("vfpass doctor")));
}

TEST_F(VfCountTest, RemovalThatFailsPointsToTheKernelLog) {
  tree_.vf(0);
  kernel_.fileErrors["sriov_numvfs"] = EIO;
  EXPECT_THAT(failure([&] { remove(); }), HasSubstr("cannot remove the VFs: Input/output error"));
  EXPECT_EQ(remedy_, "find the cause in the kernel log: `dmesg | grep 0000:01:00.0`");
}

TEST_F(VfCountTest, ReportsRemovalWithoutEffect) {
  create(4);
  kernel_.ineffective = "sriov_numvfs";
  EXPECT_THAT(failure([&] { remove(); }), HasSubstr("cannot remove the VFs: 4 VFs remain"));
}

TEST_F(VfCountTest, JudgesByTheVfsIfTheHelperWasKilled) {
  kernel_.unanswered = {"sriov_numvfs=4"};
  create(4);
  EXPECT_EQ(count(), 4U);
  EXPECT_EQ(autoprobe(), "1");
  kernel_.unanswered = {"sriov_numvfs=0"};
  remove();
  EXPECT_EQ(count(), 0U);
}

TEST_F(VfCountTest, SaysThatSomethingIsLeftOfACreation) {
  kernel_.unanswered = {"sriov_drivers_autoprobe=0"};
  EXPECT_THROW(create(4), CreationLeft);
  EXPECT_EQ(autoprobe(), "0");
  tree_.file(tree_.folderOf("0000:01:00.0") + "/sriov_drivers_autoprobe", "1");
  kernel_.unanswered = {"sriov_drivers_autoprobe=1"};
  EXPECT_THROW(create(4), CreationLeft);
  kernel_.unanswered.clear();
  kernel_.fileErrors["sriov_numvfs"] = ENOMEM;
  try {
    create(4);
    ADD_FAILURE();
  } catch (const CreationLeft& error) {
    ADD_FAILURE() << "the kernel has answered: " << error.what();
  } catch (const Error&) {
  }
}

// mlx5 itself waits 120 s for pages of the firmware when VFs are removed.
TEST_F(VfCountTest, RemovalHasItsOwnDeadline) {
  kernel_.appearing = 2;
  EXPECT_THROW(createVfs(root_, kernel_, {pf_, 4, true}, vfCountDeadline, 2 * vfCountDeadline),
               Error);
  EXPECT_EQ(kernel_.deadlinesOf["sriov_numvfs=4"], vfCountDeadline);
  EXPECT_EQ(kernel_.deadlinesOf["sriov_numvfs=0"], 2 * vfCountDeadline);
  EXPECT_GT(Deadlines().removeVfs, std::chrono::seconds(120));
}

TEST_F(VfCountTest, RemovesUnusedVfs) {
  tree_.bind(tree_.vf(0), "mlx5_core");
  tree_.netdev("0000:01:00.1", "ens1f0v0", 9, "0x1002");
  remove();
  EXPECT_EQ(count(), 0U);
  kernel_.log.clear();
  remove();
  EXPECT_TRUE(kernel_.log.empty());
}

TEST_F(VfCountTest, RefusesToRemoveVfBoundToVfio) {
  tree_.vf(0);
  tree_.bind(tree_.vf(1), "vfio-pci");
  EXPECT_THAT(failure([&] { remove(); }), AllOf(HasSubstr("VF 1"), HasSubstr("vfio-pci")));
  EXPECT_EQ(code_, ExitCode::refused);
  EXPECT_TRUE(kernel_.log.empty());
}

TEST_F(VfCountTest, RefusesToRemoveVfWithActiveNetdev) {
  tree_.vf(0);
  tree_.netdev("0000:01:00.1", "ens1f0v0", 9, "0x1003");
  EXPECT_THAT(failure([&] { remove(); }), HasSubstr("ens1f0v0 is up"));
  tree_.netdev("0000:01:00.1", "ens1f0v0", 9, "0x1002");
  tree_.link(tree_.folderOf("0000:01:00.1") + "/net/ens1f0v0/master",
             "sys/devices/virtual/net/bond0");
  EXPECT_THAT(failure([&] { remove(); }), HasSubstr("has a master"));
  EXPECT_EQ(code_, ExitCode::refused);
}

}  // namespace
}  // namespace vfpass::host
