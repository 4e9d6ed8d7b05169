#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class DriverStop : public testing::Test, public DoctoredHost {
 protected:
  void dropIn(const std::string& text) const {
    file("etc/systemd/system/openibd.service.d/vfpass.conf", text);
  }
};

TEST_F(DriverStop, RequiresOpenibdToRefuseStops) {
  EXPECT_EQ(outcome("driver-stop"), Outcome::waived);
  file("usr/lib/systemd/system/openibd.service", "[Unit]\nRefuseManualStop=false\n");
  EXPECT_THAT(finding("driver-stop").remedy, testing::StartsWith("mkdir -p "));
  dropIn("[Unit]\n# RefuseManualStop=yes\n");
  EXPECT_EQ(finding("driver-stop").remedy,  // does not overwrite the file
            "set RefuseManualStop=yes in section [Unit] of "
            "/etc/systemd/system/openibd.service.d/vfpass.conf, then run systemctl daemon-reload");
  EXPECT_EQ(outcome("driver-stop"), Outcome::failed);
  dropIn("[Unit]\nRefuseManualStop = yes\n");
  EXPECT_EQ(outcome("driver-stop"), Outcome::passed);
}

TEST_F(DriverStop, NamesVmsThatHoldVfs) {
  file("etc/init.d/openibd", "#!/bin/bash\n");
  EXPECT_THAT(finding("driver-stop").seen, testing::HasSubstr("cannot tell which VMs hold VFs"));
  file("vfpass/vfio-users", "none\n");
  EXPECT_THAT(finding("driver-stop").seen, testing::HasSubstr("no VM holds a VF"));
  file("vfpass/vfio-users", "train0\ntrain1\n");
  EXPECT_THAT(finding("driver-stop").seen, testing::EndsWith("held by train0, train1"));
}

class ModuleFiles : public testing::Test, public DoctoredHost {
 protected:
  void secureBoot() const { file("proc/cmdline", "quiet module.sig_enforce\n"); }
};

TEST_F(ModuleFiles, ReadsSignatureOfUnloadedModule) {
  secureBoot();
  file("var/lib/dkms/nvidia/580.95.05/source", "");
  EXPECT_EQ(finding("module-signatures").seen, "built by DKMS but not loaded");
  file("vfpass/modules/nvidia/signature", "none\n");
  EXPECT_EQ(finding("module-signatures").seen, "its file has no signature");
  EXPECT_EQ(outcome("module-signatures"), Outcome::failed);
  file("vfpass/modules/nvidia/signature", "there\n");
  EXPECT_EQ(outcome("module-signatures"), Outcome::notObservable);
  EXPECT_THAT(finding("module-signatures").remedy, testing::StartsWith("mokutil --test-key"));
}

TEST_F(ModuleFiles, ComparesBuildTimesOfUnloadedModules) {
  EXPECT_EQ(outcome("driver-order"), Outcome::waived);
  file("vfpass/modules/nvidia_peermem/built", "1700000000\n");
  EXPECT_EQ(outcome("driver-order"), Outcome::waived);  // no OFED
  file("vfpass/modules/mlx_compat/built", "1700000100\n");
  EXPECT_EQ(finding("driver-order").seen, "its file is 100 seconds older than OFED's mlx_compat");
  EXPECT_EQ(outcome("driver-order"), Outcome::failed);
  file("vfpass/modules/mlx_compat/built", "1700000000\n");
  EXPECT_EQ(outcome("driver-order"), Outcome::passed);
}

}  // namespace
}  // namespace vfpass::doctor
