#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verification_steps.hpp"

namespace vfpass::commands {
namespace {

using testing::HasSubstr;

/// A running VF that was leased with VLAN 100.
class LeasedSettingsTest : public testing::Test {
 protected:
  LeasedSettingsTest() {
    LeasedVf vf;
    vf.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    lease.part = vf;
    lease.entry = "rail0";
    lease.domainName = "train0";
    lease.pf = *parsePciAddress("0000:3b:00.0");
    lease.device = *parsePciAddress("0000:3b:00.2");
    lease.pfPath = "pci0000:39/0000:3b:00.0";
    lease.state = LeaseState::running;
    lease.bootId = "boot";
    PhysicalFunction pf;
    pf.address = lease.pf;
    pf.path = lease.pfPath;
    pf.driver = "mlx5_core";
    pf.netdevs = {{"ens1f0np0"}};
    pf.vfs.resize(1);
    pf.vfs[0].driver = "vfio-pci";
    pf.vfs[0].settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    inventory.pfs = {pf};
  }
  [[nodiscard]] Finding judge() const { return judgeLeasedSettings(lease, inventory, "boot"); }

  Lease lease;
  Inventory inventory;
};

TEST_F(LeasedSettingsTest, SameSettingsPass) {
  const Finding finding = judge();
  EXPECT_EQ(finding.key, "vf-settings");
  EXPECT_EQ(finding.subject, "rail0");
  EXPECT_EQ(finding.observer, Observer::host);
  EXPECT_EQ(finding.outcome, Outcome::passed) << finding.seen;
}

TEST_F(LeasedSettingsTest, VlanThatSomebodyHasSetIsNamed) {
  inventory.pfs[0].vfs[0].settings.vlan = Vlan{99, 0, VlanProtocol::dot1q};
  const Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(finding.seen, HasSubstr("vlan is 99"));
  EXPECT_EQ(finding.remedy, "run `vfpass attach train0` to set it again");
}

TEST_F(LeasedSettingsTest, SettingThatMappingLeavesOutIsComparedWithThatOfTheStart) {
  vfOf(lease).settings.vlan.reset();
  VfSettings& seen = inventory.pfs[0].vfs[0].settings;
  seen.vlan = Vlan{};
  seen.spoofCheck = true;
  EXPECT_EQ(judge().outcome, Outcome::passed) << judge().seen;
  seen.vlan = Vlan{99, 0, VlanProtocol::dot1q};
  seen.spoofCheck = false;
  const Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_THAT(finding.seen, HasSubstr("vlan is 99 qos 0 802.1Q instead of none"));
  EXPECT_THAT(finding.seen, HasSubstr("spoof-check is off instead of on"));
  EXPECT_THAT(finding.remedy, HasSubstr("vlan, spoof-check of rail0 to the mapping, then run "
                                        "`vfpass attach train0`"));
  vfOf(lease).settings.vlan = seen.vlan;
  vfOf(lease).settings.spoofCheck = false;
  EXPECT_EQ(judge().outcome, Outcome::passed) << "as the remedy says";
}

TEST_F(LeasedSettingsTest, SettingThatMappingLeavesOutMayHaveItsOriginalValue) {
  VfSettings& seen = inventory.pfs[0].vfs[0].settings;
  seen.trust = true;
  EXPECT_EQ(judge().outcome, Outcome::warning);
  lease.original.settings.trust = true;
  EXPECT_EQ(judge().outcome, Outcome::passed) << "the driver may have refused the neutral one";
}

TEST_F(LeasedSettingsTest, SettingThatTheDriverRefusedIsNotCompared) {
  inventory.pfs[0].vfs[0].settings.trust = true;
  vfOf(lease).refused = {Attribute::trust};
  EXPECT_EQ(judge().outcome, Outcome::passed) << judge().seen;
}

TEST_F(LeasedSettingsTest, VlanOfAnInterfaceIsLibvirts) {
  vfOf(lease).settings.vlan.reset();
  vfOf(lease).interfaceForm = true;
  EXPECT_EQ(judge().outcome, Outcome::passed) << judge().seen;
}

TEST_F(LeasedSettingsTest, SettingThatKernelDoesNotShowHasNotPassed) {
  inventory.pfs[0].vfs[0].settings.vlan.reset();
  const Finding finding = judge();
  EXPECT_EQ(finding.outcome, Outcome::waived);
  EXPECT_THAT(finding.seen, HasSubstr("vlan"));
}

TEST_F(LeasedSettingsTest, VfThatIsGoneIsNamed) {
  inventory.pfs[0].vfs.clear();
  EXPECT_EQ(judge().outcome, Outcome::warning);
  EXPECT_THAT(judge().seen, HasSubstr("VF 0 does not exist"));
  EXPECT_NE(judge().remedy, "");
}

}  // namespace
}  // namespace vfpass::commands
