#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Sriov : public testing::Test, public DoctoredHost {};

TEST_F(Sriov, RequiresMappedDevices) {
  EXPECT_EQ(outcome("mapped-devices"), Outcome::waived);
  Mapping mapping;
  mapping.vm = "train0";
  MappedVf vf;
  vf.name = "rail0";
  vf.pf.pci = function(pf).address;
  mapping.vfs.push_back(vf);
  mapping.functions.push_back({"gpu0", function(gpu).address, {}});
  requirements = requirementsOf(builder.topology, {mapping}, {}, true);
  ASSERT_EQ(requirements.vfs.size(), 1U);
  EXPECT_EQ(requirements.vfs[0].pf, function(pf).address);
  EXPECT_EQ(outcome("mapped-devices"), Outcome::passed);
  mapping.vfs[0].pf = {};
  mapping.vfs[0].pf.netdev = "ens9";
  requirements = requirementsOf(builder.topology, {mapping}, {}, true);
  EXPECT_EQ(finding("mapped-devices").subject, "train0, rail0: netdev ens9");
  mapping.vfs[0].pf = {};
  mapping.vfs[0].pf.near = "gpu0";  // unresolved
  requirements = requirementsOf(builder.topology, {mapping}, {}, true);
  EXPECT_EQ(finding("mapped-devices").subject, "train0, rail0: near gpu0");
  EXPECT_EQ(finding("mapped-devices").seen, "no PF near it on this host");
}

TEST_F(Sriov, FindsMappedDeviceBySerialNumber) {
  function(pf).serial = "MT2231X00001";
  Mapping mapping;
  mapping.vm = "train0";
  MappedVf vf;
  vf.name = "rail0";
  vf.pf.serial = "MT2231X00001";
  mapping.vfs.push_back(vf);
  requirements = requirementsOf(builder.topology, {mapping}, {}, true);
  ASSERT_EQ(requirements.vfs.size(), 1U);
  EXPECT_EQ(requirements.vfs[0].pf, function(pf).address);
  const auto second = builder.topology.functions[pf];
  builder.topology.functions.push_back(second);  // the card's other PF
  requirements = requirementsOf(builder.topology, {mapping}, {}, true);
  EXPECT_EQ(finding("mapped-devices").seen, "the card has several PFs: specify `function:`");
  mapping.vfs[0].pf.serial = "MT2231X00002";
  requirements = requirementsOf(builder.topology, {mapping}, {}, true);
  EXPECT_EQ(finding("mapped-devices").seen, "not on this host");
}

TEST_F(Sriov, ReportsMellanoxFirmwareWithoutSriov) {
  EXPECT_EQ(finding("sriov-firmware").seen, "2 of 16 VFs created");
  function(pf).totalVfs = 0;
  EXPECT_THAT(finding("sriov-firmware").remedy,
              testing::StartsWith("mstconfig -d 0000:03:00.0 set SRIOV_EN=1"));
  function(pf).vendor = 0x8086;  // without a known setting to enable it
  EXPECT_TRUE(findings("sriov-firmware").empty());
}

TEST_F(Sriov, ReportsVfCountThatCannotGrow) {
  EXPECT_EQ(outcome("vf-count"), Outcome::waived);
  require({});
  require({});
  EXPECT_EQ(outcome("vf-count"), Outcome::passed);
  require({});
  EXPECT_EQ(outcome("vf-count"), Outcome::failed);
  function(pf).vfCount = 0;  // attach creates them
  EXPECT_EQ(outcome("vf-count"), Outcome::passed);
  HostPolicy policy;
  policy.pfs.emplace_back();
  policy.pfs[0].pf.rdma = "mlx5_0";
  policy.pfs[0].vfCount = 17;
  requirements = requirementsOf(builder.topology, {}, policy, false);
  EXPECT_THAT(finding("vf-count").remedy, testing::HasSubstr("NUM_OF_VFS=17"));
}

TEST_F(Sriov, RequiresProbingForManagedVfs) {
  require({});
  EXPECT_EQ(outcome("vf-probing"), Outcome::waived);
  requirements.vfs[0].managed = true;
  EXPECT_EQ(outcome("vf-probing"), Outcome::notObservable);
  file(pf, "sriov_drivers_autoprobe", "1\n");
  EXPECT_EQ(outcome("vf-probing"), Outcome::passed);
  file(pf, "sriov_drivers_autoprobe", "0\n");
  EXPECT_EQ(outcome("vf-probing"), Outcome::failed);
}

TEST_F(Sriov, ReportsFirmwareWithVfEscape) {
  const auto of = [&](const std::string& firmware) {
    function(pf).rdma[0].firmware = firmware;
    return outcome("firmware-escape");
  };
  for (const std::string fixed :
       {"28.46.3008", "28.47.1000", "22.35.8002", "28.39.8002", "28.43.8010"}) {
    EXPECT_EQ(of(fixed), Outcome::passed) << fixed;
  }
  for (const std::string open :
       {"28.46.3007", "28.45.8002", "28.39.2048", "20.31.1014", "28.44.9000"}) {
    EXPECT_EQ(of(open), Outcome::failed) << open;
  }
  for (const std::string unknown : {"", "28", "28.46", "28.x.3008", "28.46.3008-beta"}) {
    EXPECT_EQ(of(unknown), Outcome::notObservable) << unknown;
  }
  function(pf).vendor = 0x8086;
  EXPECT_EQ(of("28.39.2048"), Outcome::waived);
}

}  // namespace
}  // namespace vfpass::doctor
