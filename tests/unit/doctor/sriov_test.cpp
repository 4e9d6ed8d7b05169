#include <gmock/gmock.h>
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
  EXPECT_NE(outcome("pf-netdev"), Outcome::waived) << "another PF may take its place";
  EXPECT_EQ(finding("sriov-firmware").seen, "2 of 16 VFs created");
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

// 4096 bytes with an SR-IOV capability whose first VF BAR is 64-bit and prefetchable.
std::string configWithVfBar() {
  std::string config(4096, '\0');
  config[0x100] = 0x10;
  config[0x102] = 0x01;
  config[0x124] = 0x0c;
  return config;
}

std::string resources(const std::string& vfBar) {
  std::string text;
  for (int line = 0; line < 13; ++line) {
    text += (line == 7 ? vfBar : "0x0000000000000000 0x0000000000000000 0x0000000000000000") + "\n";
  }
  return text;
}

TEST_F(Sriov, RequiresAddressesForVfBars) {
  EXPECT_EQ(finding("vf-space").seen, "2 VFs exist");
  function(pf).vfCount = 0;
  EXPECT_EQ(outcome("vf-space"), Outcome::notObservable);
  file(pf, "resource", resources("0x0000030000000000 0x00000300ffffffff 0x000000000014220c"));
  EXPECT_EQ(finding("vf-space").seen, "1 VF BARs have addresses");
  EXPECT_EQ(outcome("vf-space"), Outcome::passed);
  file(pf, "resource", resources("0x0000000000000000 0x00000000ffffffff 0x000000002014220c"));
  EXPECT_EQ(finding("vf-space").seen, "1 of 1 VF BARs without an address");
  EXPECT_EQ(outcome("vf-space"), Outcome::failed);
  file(pf, "resource", resources("0x0000000000000000 0x0000000000000000 0x0000000000000000"));
  EXPECT_EQ(outcome("vf-space"), Outcome::notObservable) << "as if there were none";
  file(pf, "config", configWithVfBar());
  EXPECT_EQ(finding("vf-space").seen, "1 of 1 VF BARs without an address");
  EXPECT_THAT(finding("vf-space").remedy, testing::HasSubstr("pci=realloc"));
  file("proc/cmdline", "root=/dev/sda1 pci=noaer,realloc\n");
  EXPECT_THAT(finding("vf-space").remedy,
              testing::AllOf(testing::HasSubstr("lower the maximum number"),
                             testing::Not(testing::HasSubstr("pci=realloc"))));
  file("proc/cmdline", "pci=realloc=off\n");
  EXPECT_THAT(finding("vf-space").remedy, testing::HasSubstr("pci=realloc"));
  function(pf).totalVfs = 0;
  EXPECT_EQ(outcome("vf-space"), Outcome::waived);
}

TEST_F(Sriov, SpaceOfManagementNicIsOnlyAWarning) {
  function(pf).vfCount = 0;
  file(pf, "resource", resources("0x0000000000000000 0x00000000ffffffff 0x000000002014220c"));
  function(pf).vendor = 0x8086;
  function(pf).driver = "ixgbe";
  function(pf).rdma.clear();
  EXPECT_EQ(outcome("vf-space"), Outcome::warning);
  require({});
  EXPECT_EQ(outcome("vf-space"), Outcome::failed) << "a mapping needs it";
}

TEST_F(Sriov, RequiresBusNumbersForWantedVfs) {
  function(pf).path = "pci0000:00/0000:02:00.0/0000:03:00.0";
  std::string bridge(64, '\0');
  bridge[0x0e] = static_cast<char>(0x81);
  bridge[0x1a] = 0x04;
  file("sys/devices/pci0000:00/0000:02:00.0/config", bridge);
  file(pf, "sriov_offset", "254\n");
  file(pf, "sriov_stride", "1\n");
  Requirement requirement;
  requirement.index = 256;
  require(requirement);
  EXPECT_EQ(outcome("vf-space"), Outcome::passed) << "0000:03:fe.0 to 0000:04:ff.0";
  requirements.vfs.back().index = 258;
  EXPECT_EQ(finding("vf-space").seen, "bus numbers for 258 of 259 VFs");
  EXPECT_EQ(outcome("vf-space"), Outcome::failed);
  EXPECT_THAT(finding("vf-space").remedy, testing::HasSubstr("pci=assign-busses"));
  bridge[0x1a] = 0x03;
  file("sys/devices/pci0000:00/0000:02:00.0/config", bridge);
  file(pf, "sriov_offset", "256\n");
  EXPECT_EQ(finding("vf-space").seen, "bus numbers for 0 of 259 VFs");
  bridge[0x1a] = 0x02;  // does not lead to the PF
  file("sys/devices/pci0000:00/0000:02:00.0/config", bridge);
  EXPECT_EQ(outcome("vf-space"), Outcome::passed);
}

TEST_F(Sriov, ReportsMellanoxFirmwareWithoutSriov) {
  EXPECT_EQ(finding("sriov-firmware").seen, "2 of 16 VFs created");
  function(pf).totalVfs = 0;
  EXPECT_EQ(finding("sriov-firmware").remedy,
            "mstconfig -d 0000:03:00.0 set SRIOV_EN=1 NUM_OF_VFS=16, then power-cycle the machine");
  function(pf).vendor = 0x8086;  // without a known setting to enable it
  EXPECT_TRUE(findings("sriov-firmware").empty());
}

/// A ConnectX without VFs, and without RDMA device, because mlx5_ib is not loaded.
class SriovOff : public Sriov {
 protected:
  SriovOff() {
    function(pf).totalVfs = 0;
    function(pf).rdma.clear();
  }
  std::string remedyWith(const std::string& settings) const {
    file("vfpass/firmware/0000:03:00.0", settings);
    return finding("sriov-firmware").remedy;
  }
};

TEST_F(SriovOff, IsSetOnlyAsFarAsMissing) {
  EXPECT_EQ(remedyWith("NUM_OF_VFS 64 64\nSRIOV_EN False(0) False(0)\n"),
            "mstconfig -d 0000:03:00.0 set SRIOV_EN=1, then power-cycle the machine");
  EXPECT_EQ(remedyWith("NUM_OF_VFS 0 0\nSRIOV_EN True(1) True(1)\n"),
            "mstconfig -d 0000:03:00.0 set NUM_OF_VFS=16, then power-cycle the machine");
  EXPECT_EQ(remedyWith("NUM_OF_VFS 0 16\nSRIOV_EN False(0) True(1)\n"), "power-cycle the machine");
}

TEST_F(SriovOff, IsNotSetAgain) {
  const std::string set = "NUM_OF_VFS 16 16\nSRIOV_EN True(1) True(1)\n";
  EXPECT_THAT(remedyWith(set),
              testing::AllOf(testing::StartsWith("SRIOV_EN and NUM_OF_VFS are set already: enable "
                                                 "SR-IOV in the system's firmware (BIOS), then "
                                                 "power-cycle the machine"),
                             testing::HasSubstr("with PF_NUM_OF_VF_VALID=1 the card ignores "
                                                "NUM_OF_VFS"),
                             testing::Not(testing::HasSubstr("set SRIOV_EN"))));
  EXPECT_THAT(remedyWith(set + "PF_NUM_OF_VF_VALID False(0) False(0)\n"),
              testing::Not(testing::HasSubstr("PF_NUM_OF_VF_VALID")));
}

TEST_F(SriovOff, IsLimitedByThePfsOwnNumber) {
  const std::string set =
      "NUM_OF_VFS 16 16\nSRIOV_EN True(1) True(1)\nPF_NUM_OF_VF_VALID True(1) True(1)\n";
  const std::string remedy =
      "mstconfig -d 0000:03:00.0 set PF_NUM_OF_VF=16, then power-cycle the machine  # with "
      "PF_NUM_OF_VF_VALID=1 the card ignores NUM_OF_VFS";
  EXPECT_EQ(remedyWith(set), remedy);
  EXPECT_EQ(remedyWith(set + "PF_NUM_OF_VF 0 0\n"), remedy);
  EXPECT_THAT(remedyWith(set + "PF_NUM_OF_VF 16 16\n"),
              testing::StartsWith("SRIOV_EN and PF_NUM_OF_VF are set already"));
}

TEST_F(Sriov, ReportsVfCountThatCannotGrow) {
  EXPECT_EQ(outcome("vf-count"), Outcome::waived);
  require({});
  require({});
  EXPECT_EQ(outcome("vf-count"), Outcome::passed);
  require({});
  EXPECT_EQ(outcome("vf-count"), Outcome::failed);
  EXPECT_EQ(finding("vf-count").remedy,
            "set virtual-function-count: 3 for this PF in host.yaml, detach all VMs of this PF, "
            "then run vfpass host apply");
  requirements.vfCounts[function(pf).address] = 3;
  EXPECT_EQ(finding("vf-count").remedy, "detach all VMs of this PF, then run vfpass host apply");
  requirements.vfs.back().index = 7;
  EXPECT_EQ(finding("vf-count").expected, "room for 8 VFs");
  function(pf).vfCount = 0;  // attach creates them
  EXPECT_EQ(outcome("vf-count"), Outcome::passed);
  HostPolicy policy;
  policy.pfs.emplace_back();
  policy.pfs[0].pf.rdma = "mlx5_0";
  policy.pfs[0].vfCount = 17;
  requirements = requirementsOf(builder.topology, {}, policy, false);
  EXPECT_EQ(finding("vf-count").remedy,
            "mstconfig -d 0000:03:00.0 set SRIOV_EN=1 NUM_OF_VFS=17, then power-cycle the machine");
  file("vfpass/firmware/0000:03:00.0", "SRIOV_EN True(1) True(1)\nNUM_OF_VFS 16 32\n");
  EXPECT_EQ(finding("vf-count").remedy, "power-cycle the machine");
  function(pf).vendor = 0x14e4;
  function(pf).driver = "bnxt_en";
  EXPECT_THAT(finding("vf-count").remedy,
              testing::AllOf(testing::HasSubstr("vendor's tool"),
                             testing::Not(testing::HasSubstr("mstconfig"))));
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
  EXPECT_EQ(of("16.35.8002"), Outcome::passed);
  function(pf).driver = "mlx4_core";  // its firmware has other version numbers
  EXPECT_EQ(of("2.42.5000"), Outcome::waived);
  function(pf).driver = "mlx5_core";
  function(pf).vendor = 0x8086;
  EXPECT_EQ(of("28.39.2048"), Outcome::waived);
}

// A failure that no firmware can end would make doctor fail for ever.
TEST_F(Sriov, WarnsOfVfEscapeThatNoFirmwareFixes) {
  for (const auto& [firmware, card] :
       {std::pair("12.28.2302", "exists for ConnectX-4, whose last branch is 28"),
        std::pair("14.32.1912", "exists for ConnectX-4 Lx, whose last branch is 32"),
        std::pair("10.16.1200", "exists for Connect-IB"),
        std::pair("16.35.4506", "is known for ConnectX-5, whose last branch is 35"),
        std::pair("18.33.1048", "is known for BlueField")}) {
    function(pf).rdma[0].firmware = firmware;
    const Finding found = finding("firmware-escape");
    EXPECT_EQ(found.outcome, Outcome::warning) << firmware;
    EXPECT_THAT(found.seen, testing::HasSubstr(std::string("; no fixed firmware ") + card));
    EXPECT_THAT(found.remedy, testing::AllOf(testing::HasSubstr("only for guests that you trust"),
                                             testing::Not(testing::HasSubstr("burn"))));
  }
}

}  // namespace
}  // namespace vfpass::doctor
