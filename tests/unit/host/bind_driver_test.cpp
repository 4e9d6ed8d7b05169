#include "drivers/driver_binding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulated_kernel.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/host/driver_modules.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BindDriverTest : public testing::Test {
 protected:
  BindDriverTest() : root_(tree_.path()), kernel_(tree_) {
    tree_.pf(8);
    tree_.vf(0);
    tree_.bind("0000:01:00.1", "mlx5_core");
    tree_.driver("vfio-pci");
  }

  void run(const std::string& driver, const std::string& wantedOverride = {},
           std::optional<bool> migratable = {}) {
    bindDriver(
        root_, kernel_,
        [this](const std::string& module) {
          loaded_ = module;
          load_();
        },
        {[this](const PciAddress& vf) {
           EXPECT_EQ(vf, vf_);
           return firmware_;
         },
         [this](const PciAddress& vf, bool value) { setMigratable(vf, value); }},
        {vf_, driver, wantedOverride, migratable}, std::chrono::milliseconds(1000));
  }
  // As the firmware does: it refuses a change of a function that a driver has initialized.
  void setMigratable(const PciAddress& vf, bool value) {
    EXPECT_EQ(vf, vf_);
    if (!driver().empty()) {
      throw Error("Device or resource busy (EBUSY)");
    }
    migratable_.push_back(value);
    setMigratable_();
    if (firmware_) {
      firmware_ = value;
    }
  }
  std::string failure(const std::string& driver, std::optional<bool> migratable = {}) {
    try {
      run(driver, {}, migratable);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::string override() {
    return tree_.content(tree_.folderOf("0000:01:00.1") + "/driver_override");
  }
  std::string driver() { return readDriver(root_, vf_); }

  hosts::SysfsTree tree_;
  Root root_;
  SimulatedKernel kernel_;
  PciAddress vf_{0, 1, 0, 1};
  std::string loaded_;
  std::function<void()> load_ = [] {};
  std::optional<bool> firmware_ = false;  // empty: it cannot save the VF
  std::vector<bool> migratable_;
  std::function<void()> setMigratable_ = [] {};
};

TEST_F(BindDriverTest, MakesAVfMigratableForTheDriverThatMigratesIt) {
  run("vfio-pci", "vfio-pci");
  EXPECT_THAT(migratable_, ElementsAre()) << "no other driver needs it";
  tree_.driver("mlx5_vfio_pci");
  run("mlx5_vfio_pci", "mlx5_vfio_pci");
  EXPECT_EQ(driver(), "mlx5_vfio_pci");
  EXPECT_THAT(migratable_, ElementsAre(true));
  run("mlx5_core");
  EXPECT_EQ(driver(), "mlx5_core");
  EXPECT_THAT(migratable_, ElementsAre(true, false));
}

TEST_F(BindDriverTest, TakesMigratableBackWhenItUnbindsTheVf) {
  tree_.driver("mlx5_vfio_pci");
  run("mlx5_vfio_pci");
  run("");
  EXPECT_THAT(migratable_, ElementsAre(true, false));
}

TEST_F(BindDriverTest, BindsAVfAgainThatHasTheDriverButIsNotMigratable) {
  tree_.bind("0000:01:00.1", "mlx5_vfio_pci");
  run("mlx5_vfio_pci", "mlx5_vfio_pci");
  EXPECT_EQ(driver(), "mlx5_vfio_pci");
  EXPECT_EQ(firmware_, true);
  EXPECT_THAT(kernel_.log, ElementsAre("unbind=0000:01:00.1", "driver_override=mlx5_vfio_pci\n",
                                       "bind=0000:01:00.1"));
  kernel_.log.clear();
  run("mlx5_vfio_pci", "mlx5_vfio_pci");
  EXPECT_THAT(kernel_.log, ElementsAre()) << "it is migratable by then";
  run("mlx5_vfio_pci", "mlx5_vfio_pci", false);
  EXPECT_EQ(driver(), "mlx5_vfio_pci");
  EXPECT_EQ(firmware_, false) << "as it was before";
}

TEST_F(BindDriverTest, LeavesAVfAloneThatCannotBeMigratable) {
  tree_.bind("0000:01:00.1", "mlx5_vfio_pci");
  firmware_.reset();
  run("mlx5_vfio_pci", "mlx5_vfio_pci");
  EXPECT_THAT(migratable_, ElementsAre());
}

TEST_F(BindDriverTest, KeepsAVfMigratableThatWasSoBefore) {
  tree_.driver("mlx5_vfio_pci");
  firmware_ = true;
  run("mlx5_vfio_pci");
  run("mlx5_core", {}, true);
  EXPECT_EQ(driver(), "mlx5_core");
  EXPECT_EQ(firmware_, true);
}

// A reboot or a mode change has made the VF again.
TEST_F(BindDriverTest, RestoresTheDriverOfAVfThatDevlinkDoesNotShowAnyMore) {
  firmware_.reset();
  setMigratable_ = [] { throw Error("devlink has no port of this VF"); };
  tree_.bind("0000:01:00.1", "vfio-pci");
  run("mlx5_core", {}, true);
  EXPECT_EQ(driver(), "mlx5_core");
}

TEST_F(BindDriverTest, RestoresMigratableWithTheDriver) {
  tree_.bind("0000:01:00.1", "mlx5_vfio_pci");
  kernel_.refusals["mlx5_vfio_pci"] = EINVAL;  // once
  setMigratable_ = [this] {
    if (!migratable_.back()) {
      kernel_.refusals.clear();
    }
  };
  EXPECT_THAT(failure("mlx5_vfio_pci"), HasSubstr("the previous driver was restored"));
  EXPECT_EQ(driver(), "mlx5_vfio_pci");
  EXPECT_THAT(migratable_, ElementsAre(true, false));
}

TEST_F(BindDriverTest, RestoresTheDriverOfAVfThatCannotBeMadeMigratable) {
  tree_.driver("mlx5_vfio_pci");
  firmware_.reset();
  setMigratable_ = [this] {
    if (migratable_.back()) {
      throw Error("the PF is not in switchdev mode");
    }
  };
  EXPECT_THAT(failure("mlx5_vfio_pci"),
              HasSubstr("not in switchdev mode; the previous driver was restored"));
  EXPECT_EQ(driver(), "mlx5_core");
  EXPECT_THAT(migratable_, ElementsAre(true, false));
}

TEST_F(BindDriverTest, BindsToVfioAndSetsRequestedOverride) {
  run("vfio-pci", "vfio-pci");
  EXPECT_EQ(driver(), "vfio-pci");
  EXPECT_EQ(override(), "vfio-pci\n");
  EXPECT_THAT(kernel_.log, ElementsAre("unbind=0000:01:00.1", "driver_override=vfio-pci\n",
                                       "bind=0000:01:00.1"));
}

TEST_F(BindDriverTest, ClearsOverrideWhenNoneIsRequested) {
  run("vfio-pci");
  EXPECT_EQ(driver(), "vfio-pci");
  EXPECT_EQ(override(), "(null)\n");
}

TEST_F(BindDriverTest, BindsBackToHostDriverWithTemporaryOverride) {
  run("vfio-pci", "vfio-pci");
  kernel_.log.clear();
  run("mlx5_core");
  EXPECT_EQ(driver(), "mlx5_core");
  EXPECT_EQ(override(), "(null)\n");
  EXPECT_THAT(kernel_.log, ElementsAre("unbind=0000:01:00.1", "driver_override=mlx5_core\n",
                                       "bind=0000:01:00.1", "driver_override=\n"));
}

TEST_F(BindDriverTest, DoesNothingWhenAlreadyBound) {
  run("vfio-pci", "vfio-pci");
  kernel_.log.clear();
  run("vfio-pci", "vfio-pci");
  EXPECT_TRUE(kernel_.log.empty());
}

TEST_F(BindDriverTest, SetsOnlyOverrideWhenDriverMatches) {
  run("mlx5_core", "mlx5_core");
  EXPECT_THAT(kernel_.log, ElementsAre("driver_override=mlx5_core\n"));
}

TEST_F(BindDriverTest, OnlyUnbindsWhenNoDriverIsRequested) {
  run("");
  EXPECT_EQ(driver(), "");
  EXPECT_THAT(kernel_.log, ElementsAre("unbind=0000:01:00.1"));
}

TEST_F(BindDriverTest, RestoresPreviousDriverAfterFailedProbe) {
  kernel_.refusals["vfio-pci"] = EINVAL;
  EXPECT_THAT(failure("vfio-pci"), testing::AllOf(HasSubstr("probe failed"),
                                                  HasSubstr("the previous driver was restored")));
  EXPECT_EQ(driver(), "mlx5_core");
  EXPECT_EQ(override(), "(null)\n");
}

TEST_F(BindDriverTest, ReportsFailureToRestorePreviousDriver) {
  kernel_.refusals["vfio-pci"] = EINVAL;
  kernel_.refusals["mlx5_core"] = EIO;
  EXPECT_THAT(failure("vfio-pci"), HasSubstr("cannot restore the previous driver"));
}

// As if a udev rule had bound it again at once.
TEST_F(BindDriverTest, ReportsUnbindWithoutEffect) {
  kernel_.ineffective = "unbind";
  EXPECT_THAT(failure(""), HasSubstr("still bound to mlx5_core after the unbind"));
}

TEST_F(BindDriverTest, ReportsBindWithoutEffect) {
  kernel_.ineffective = "bind";
  EXPECT_THAT(failure("vfio-pci"),
              HasSubstr("cannot bind to vfio-pci: the device has no driver afterwards"));
}

TEST_F(BindDriverTest, DoesNotRollBackAfterHangingUnbind) {
  kernel_.hangs = "unbind";
  EXPECT_THROW(run("vfio-pci"), TimeoutError);
  EXPECT_THAT(kernel_.log, ElementsAre("unbind=0000:01:00.1"));
}

TEST_F(BindDriverTest, LoadsMissingVfioModule) {
  tree_.remove("sys/bus/pci/drivers/vfio-pci");
  load_ = [this] { tree_.driver("vfio-pci"); };
  run("vfio-pci");
  EXPECT_EQ(loaded_, "vfio-pci");
  EXPECT_EQ(driver(), "vfio-pci");
}

TEST_F(BindDriverTest, ChangesNothingForUnknownDriver) {
  EXPECT_THAT(failure("ixgbevf"), HasSubstr("PCI driver not loaded"));
  EXPECT_TRUE(loaded_.empty());
  EXPECT_TRUE(kernel_.log.empty());
  EXPECT_EQ(driver(), "mlx5_core");
}

TEST_F(BindDriverTest, RejectsInvalidDriverNames) {
  tree_.bind("0000:01:00.1", "mlx5_core");
  tree_.file("x/bind", "");
  for (const std::string& name :
       {std::string("../../../../../../tmp/x"), std::string("/path/x_vfio-pci"), std::string(".."),
        std::string("a/../vfio-pci"), std::string("vfio pci"), std::string("vfio-pci\n"),
        std::string("vfio-pci\0", 9), std::string("-C"), std::string(64, 'a')}) {
    EXPECT_THAT(failure(name), HasSubstr("invalid driver name")) << name;
    EXPECT_THROW(run("vfio-pci", name), Error) << name;
    EXPECT_THROW(driverPath(name), Error) << name;
  }
  EXPECT_THROW(driverPath(""), Error);
  EXPECT_TRUE(kernel_.log.empty());
  EXPECT_EQ(loaded_, "");
  EXPECT_EQ(driver(), "mlx5_core");
}

TEST_F(BindDriverTest, LoadsNoModuleWithSimilarNameToVfio) {
  for (const char* name : {"x_vfio-pci", "x-vfio_pci", "vfio-pci-x", "vfio_pci"}) {
    EXPECT_THAT(failure(name), HasSubstr("PCI driver not loaded")) << name;
    EXPECT_FALSE(isVfioDriver(name)) << name;
    EXPECT_FALSE(isLoadable(name)) << name;
    EXPECT_THROW(loadModule(name, std::chrono::milliseconds(1000)), Error) << name;
  }
  EXPECT_EQ(loaded_, "");
  for (const char* name : {"vfio-pci", "mlx5_vfio_pci", "mlx5-vfio-pci", "nvgrace_gpu_vfio_pci",
                           "nvgrace-gpu-vfio-pci"}) {
    EXPECT_TRUE(isVfioDriver(name)) << name;
    EXPECT_TRUE(isLoadable(name)) << name;
  }
}

TEST_F(BindDriverTest, NamesMissingDevice) {
  vf_ = PciAddress{0, 9, 0, 0};
  EXPECT_THAT(failure("vfio-pci"), HasSubstr("0000:09:00.0: no such PCI device"));
}

}  // namespace
}  // namespace vfpass::host
