#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class VfMigration : public testing::Test, public DoctoredHost {
 protected:
  VfMigration() {
    function(pf).vendor = 0x15b3;
    function(pf).totalVfs = 8;
    require({});
    requirements.vfs[0].migration = true;
    kernel("6.12.1");
    driver("loaded");
    firmware("VF_MIGRATION_MODE MIGRATION_ENABLED(2) MIGRATION_ENABLED(2)");
  }
  void kernel(const std::string& release) const {
    file("proc/sys/kernel/osrelease", release + "\n");
  }
  void driver(const std::string& state) const {
    file("vfpass/modules/mlx5_vfio_pci/state", state + "\n");
  }
  void firmware(const std::string& settings) const {
    file("vfpass/firmware/0000:03:00.0", settings + "\n");
  }
  void devlink(const std::string& answer) const {
    file("vfpass/devlink/0000:03:00.0/migratable", answer + "\n");
  }
};

TEST_F(VfMigration, ShowsDriverAndFirmwareOfThePf) {
  const Finding found = finding("vf-migration");
  EXPECT_EQ(found.outcome, Outcome::passed);
  EXPECT_EQ(found.subject, "mlx5_0");
  EXPECT_EQ(found.seen,
            "mlx5_vfio_pci loaded (Linux 6.12), VF_MIGRATION_MODE MIGRATION_ENABLED(2)");
  driver("installed");
  EXPECT_EQ(outcome("vf-migration"), Outcome::passed);
}

TEST_F(VfMigration, IsWaivedWithoutSuchAMapping) {
  requirements.vfs[0].migration = false;
  EXPECT_EQ(outcome("vf-migration"), Outcome::waived);
}

TEST_F(VfMigration, RefusesAPfOfAnotherVendor) {
  function(pf).vendor = 0x8086;
  function(pf).driver = "ice";
  const Finding found = finding("vf-migration");
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_EQ(found.expected,
            "a NIC of mlx5_core: train0, rail0 has `migration: vfio`, and vfpass knows no other "
            "driver that migrates a VF");
  EXPECT_EQ(found.seen, "driver ice");
  EXPECT_EQ(found.remedy,
            "remove migration: from the mapping, or choose a PF of a ConnectX-7 or BlueField-3");
}

TEST_F(VfMigration, NamesTheKernelThatLacksTheDriver) {
  driver("absent");
  EXPECT_EQ(outcome("vf-migration"), Outcome::failed);
  EXPECT_NE(finding("vf-migration").remedy.find("CONFIG_MLX5_VFIO_PCI"), std::string::npos);
  driver("loaded");
  kernel("6.1.0-30-amd64");
  EXPECT_EQ(finding("vf-migration").remedy,
            "boot Linux 6.2 or newer, or use teaming: instead of migration: in the mapping");
}

TEST_F(VfMigration, NamesTheFirmwareThatDoesNotPermitIt) {
  firmware("VF_MIGRATION_MODE DEVICE_DEFAULT(0) DEVICE_DEFAULT(0)");
  EXPECT_EQ(outcome("vf-migration"), Outcome::failed);
  EXPECT_EQ(finding("vf-migration").remedy,
            "mstconfig -d 0000:03:00.0 set VF_MIGRATION_MODE=2, then power-cycle the machine");
  firmware("VF_MIGRATION_MODE DEVICE_DEFAULT(0) MIGRATION_ENABLED(2)");
  EXPECT_EQ(finding("vf-migration").remedy, "power-cycle the machine");
  firmware("SRIOV_EN True(1) True(1)");
  EXPECT_EQ(outcome("vf-migration"), Outcome::failed);
  EXPECT_NE(finding("vf-migration").seen.find("no VF_MIGRATION_MODE"), std::string::npos);
}

TEST_F(VfMigration, IsNotObservableWhereNothingTells) {
  firmware("garbage");
  EXPECT_EQ(outcome("vf-migration"), Outcome::notObservable);
  EXPECT_EQ(finding("vf-migration").remedy,
            "sudo mstconfig -e -d 0000:03:00.0 query VF_MIGRATION_MODE");
  firmware("VF_MIGRATION_MODE - MIGRATION_ENABLED(2)");
  EXPECT_EQ(outcome("vf-migration"), Outcome::notObservable);
}

TEST_F(VfMigration, BelievesDevlinkBeforeTheSettings) {
  devlink("no");
  EXPECT_EQ(outcome("vf-migration"), Outcome::failed);
  EXPECT_EQ(finding("vf-migration").seen,
            "mlx5_vfio_pci loaded (Linux 6.12), VF_MIGRATION_MODE MIGRATION_ENABLED(2), "
            "devlink has no `migratable`");
  EXPECT_NE(finding("vf-migration").remedy.find("install firmware"), std::string::npos);
  firmware("garbage");
  EXPECT_EQ(outcome("vf-migration"), Outcome::failed);
  EXPECT_EQ(finding("vf-migration").remedy,
            "mstconfig -d 0000:03:00.0 set VF_MIGRATION_MODE=2, then power-cycle the machine");
  devlink("yes");
  EXPECT_EQ(outcome("vf-migration"), Outcome::passed);
  firmware("VF_MIGRATION_MODE DEVICE_DEFAULT(0) DEVICE_DEFAULT(0)");
  EXPECT_EQ(outcome("vf-migration"), Outcome::passed);
}

TEST_F(VfMigration, FailsIfTheNextBootTakesAwayWhatDevlinkHas) {
  devlink("yes");
  firmware("VF_MIGRATION_MODE MIGRATION_ENABLED(2) MIGRATION_DISABLED(1)");
  EXPECT_EQ(outcome("vf-migration"), Outcome::failed);
  EXPECT_EQ(finding("vf-migration").remedy,
            "mstconfig -d 0000:03:00.0 set VF_MIGRATION_MODE=2, then power-cycle the machine");
  firmware("VF_MIGRATION_MODE - MIGRATION_DISABLED(1)");
  EXPECT_EQ(outcome("vf-migration"), Outcome::passed);
}

TEST_F(VfMigration, AsksForTheSettingsWhereDevlinkHasNoPorts) {
  devlink("garbage");
  EXPECT_EQ(outcome("vf-migration"), Outcome::passed);
  firmware("garbage");
  EXPECT_EQ(outcome("vf-migration"), Outcome::notObservable);
}

TEST_F(VfMigration, NamesTheDriverFirst) {
  driver("absent");
  devlink("no");
  EXPECT_NE(finding("vf-migration").remedy.find("CONFIG_MLX5_VFIO_PCI"), std::string::npos);
}

TEST(VfMigrationDriver, IsNotObservableInATreeWithoutTheAnswer) {
  DoctoredHost host;
  host.function(host.pf).vendor = 0x15b3;
  host.require({});
  host.requirements.vfs[0].migration = true;
  host.file("vfpass/firmware/0000:03:00.0",
            "VF_MIGRATION_MODE MIGRATION_ENABLED(2) MIGRATION_ENABLED(2)\n");
  EXPECT_EQ(host.finding("vf-migration").outcome, Outcome::notObservable);
  EXPECT_EQ(host.finding("vf-migration").remedy, "modinfo mlx5_vfio_pci");
}

}  // namespace
}  // namespace vfpass::doctor
