#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Eswitch : public testing::Test, public DoctoredHost {
 protected:
  Eswitch() { function(pf).totalVfs = 8; }
  void mode(const std::string& text) const {
    file("vfpass/devlink/0000:03:00.0/eswitch-mode", text + "\n");
  }
};

TEST_F(Eswitch, AcceptsAnyModeWithoutRequirements) {
  EXPECT_EQ(outcome("eswitch"), Outcome::notObservable);
  mode("switchdev");
  EXPECT_EQ(outcome("eswitch"), Outcome::passed);
}

TEST_F(Eswitch, RequiresLegacyUnlessPolicySetsSwitchdev) {
  mode("switchdev");
  require({});
  const Finding found = finding("eswitch");
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_EQ(
      found.remedy,
      "set embedded-switch-mode: legacy for PF 0000:03:00.0 in host.yaml, then run vfpass host "
      "apply");
  requirements.eswitchModes[function(pf).address] = "switchdev";
  EXPECT_EQ(outcome("eswitch"), Outcome::passed);
  mode("legacy");
  EXPECT_EQ(finding("eswitch").expected, "switchdev: set in host.yaml");
  EXPECT_EQ(finding("eswitch").remedy, "vfpass host apply");
  EXPECT_EQ(outcome("eswitch"), Outcome::failed);
}

TEST_F(Eswitch, VlanRequiresLegacyDespitePolicy) {
  requirements.eswitchModes[function(pf).address] = "switchdev";
  require({});
  requirements.vfs[0].legacyOnly = {"vlan", "spoof-check"};
  mode("switchdev");
  EXPECT_EQ(finding("eswitch").expected, "legacy: train0, rail0 requires vlan, spoof-check");
  EXPECT_EQ(outcome("eswitch"), Outcome::failed);
  mode("legacy");
  EXPECT_EQ(outcome("eswitch"), Outcome::passed);
}

TEST_F(Eswitch, MigrationRequiresSwitchdev) {
  require({});
  requirements.vfs.push_back(requirements.vfs[0]);
  requirements.vfs[1].migration = true;
  requirements.vfs[1].entry = "rail1";
  mode("switchdev");
  EXPECT_EQ(finding("eswitch").expected, "switchdev: train0, rail1 has `migration: vfio`");
  EXPECT_EQ(outcome("eswitch"), Outcome::passed);
  mode("legacy");
  EXPECT_EQ(finding("eswitch").remedy,
            "set embedded-switch-mode: switchdev for PF 0000:03:00.0 in host.yaml, then run vfpass "
            "host apply");
}

TEST_F(Eswitch, IsWaivedForInfiniband) {
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  EXPECT_EQ(outcome("eswitch"), Outcome::waived);
}

TEST(Requirements, CollectsAttributesThatSwitchdevRefuses) {
  DoctoredHost host;
  Mapping mapping;
  mapping.vm = "train0";
  MappedVf vf;
  vf.name = "rail0";
  vf.pf.rdma = "mlx5_0";
  vf.required = {Attribute::mac, Attribute::vlan, Attribute::linkState, Attribute::trust};
  mapping.vfs.push_back(vf);
  PfPolicy policy;
  policy.pf.rdma = "mlx5_0";
  policy.eswitchMode = "legacy";
  const Requirements requirements =
      requirementsOf(host.builder.topology, {mapping}, {"", {policy}}, false);
  ASSERT_EQ(requirements.vfs.size(), 1U);
  EXPECT_EQ(requirements.vfs[0].legacyOnly,
            (std::vector<std::string>{"vlan", "link-state", "trust"}));
  EXPECT_EQ(requirements.eswitchModes.at(host.function(host.pf).address), "legacy");
}

}  // namespace
}  // namespace vfpass::doctor
