#include <gtest/gtest.h>

#include "acs_host.hpp"

namespace vfpass::doctor {
namespace {

class AtsTest : public AcsTest {};

// All requests pass the root complex there, where the IOMMU translates them.
TEST_F(AtsTest, RequiresNoAtsWithoutSharedSwitch) {
  const auto other = builder.function(FunctionRole::rootPort, "0000:00:02.0", 0);
  function(other).path = "0000:00:02.0";
  function(pf).parent = other;
  file(pf, "config", configWith(0x10));
  EXPECT_EQ(outcome("ats"), Outcome::passed);
  EXPECT_EQ(finding("ats").seen, "not needed: no GPU shares a switch with it");
  file("vfpass/firmware/0000:03:00.0", "ATS_ENABLED False(0) False(0)\n");
  EXPECT_THAT(finding("firmware-settings").expected, testing::Not(testing::HasSubstr("ATS")));
  function(pf).parent = nicPort;
  EXPECT_EQ(outcome("ats"), Outcome::failed);
  EXPECT_THAT(finding("firmware-settings").expected, testing::HasSubstr("ATS_ENABLED=1"));
}

TEST_F(AtsTest, RemedyEnablesAtsInFirmware) {
  EXPECT_EQ(outcome("ats"), Outcome::notObservable);
  file(pf, "config", configWith(0x0f));
  EXPECT_EQ(outcome("ats"), Outcome::passed);
  file(pf, "config", configWith(0x10));
  EXPECT_EQ(finding("ats").remedy,
            "mstconfig -d 0000:03:00.0 set ATS_ENABLED=1, then power-cycle the machine");
  const std::string answer = "vfpass/firmware/0000:03:00.0";
  file(answer, "ATS_ENABLED False(0) True(1)\n");
  EXPECT_EQ(finding("ats").remedy, "power-cycle the machine");
  file(answer, "ATS_ENABLED True(1) True(1)\n");
  EXPECT_THAT(finding("ats").remedy, testing::StartsWith("ATS_ENABLED is set already"));
  file(answer, "SRIOV_EN True(1) True(1)\n");
  EXPECT_THAT(finding("ats").remedy, testing::StartsWith("update the card's firmware"));
}

// Once for all checks and devices.
TEST_F(AtsTest, NamesOtherVendorsNicsOnce) {
  EXPECT_EQ(finding("other-nics").seen, "every NIC is a ConnectX-4 or later");
  file(pf, "config", configWith(0x10));
  for (const auto& [vendor, driver] : std::initializer_list<std::pair<std::uint16_t, const char*>>{
           {0x14e4, "bnxt_en"}, {0x8086, "ice"}, {0x1dd8, "ionic"}, {0x15b3, "mlx4_core"}}) {
    function(pf).vendor = vendor;
    function(pf).driver = driver;
    EXPECT_THAT(finding("other-nics").seen,
                testing::StartsWith("mlx5_0 (" + std::string(driver) + "): "));
    for (const std::string key :
         {"other-nics", "ats", "vf-ats", "firmware-escape", "dpu-mode", "eswitch"}) {
      ASSERT_EQ(findings(key).size(), 1U) << key;
      EXPECT_EQ(outcome(key), Outcome::waived) << driver << key;
      EXPECT_EQ(finding(key).remedy, "") << driver << key;
    }
    EXPECT_THAT(finding("iommu-passthrough").remedy, "");
  }
  file("vfpass/devlink/0000:03:00.0/eswitch-mode", "legacy\n");
  function(pf).driver = "bnxt_en";
  EXPECT_EQ(outcome("eswitch"), Outcome::passed);
  file(pf, "config", configWith(0x0f));
  EXPECT_EQ(outcome("ats"), Outcome::passed);
}

// rdma_topo's NUMA topology: GPUs of NVIDIA directly below root ports.
TEST_F(AtsTest, RefusesAtsBelowDifferentRootPortsAsRdmaTopoDoes) {
  const auto other = builder.function(FunctionRole::rootPort, "0000:00:02.0", 0);
  function(other).path = "0000:00:02.0";
  function(gpu).parent = other;
  file(pf, "config", configWith(0x0f));
  for (const std::uint16_t device : std::initializer_list<std::uint16_t>{0x1021, 0x1023, 0x1025}) {
    function(pf).device = device;
    EXPECT_EQ(outcome("ats"), Outcome::failed);
    EXPECT_EQ(finding("ats").remedy,
              "mstconfig -d 0000:03:00.0 set ATS_ENABLED=0, then power-cycle the machine");
  }
  file("vfpass/firmware/0000:03:00.0", "ATS_ENABLED True(1) False(0)\n");
  EXPECT_EQ(finding("ats").remedy, "power-cycle the machine");
  file(pf, "config", configWith(0x10));
  EXPECT_EQ(outcome("ats"), Outcome::passed);
  file(pf, "config", configWith(0x0f));
  function(gpu).vendor = 0x1002;
  EXPECT_EQ(outcome("ats"), Outcome::passed);  // none that rdma_topo knows
  function(gpu).vendor = 0x10de;
  function(pf).device = 0x101d;
  EXPECT_EQ(outcome("ats"), Outcome::passed);
}

TEST_F(AtsTest, ReportsNoatsOnKernelCommandLine) {
  file(pf, "config", configWith(0x0f));
  file("proc/cmdline", "pci=noats\n");
  EXPECT_EQ(finding("ats").remedy, "remove pci=noats from the kernel command line, then reboot");
  file("proc/cmdline", "pci=realloc,noats\n");
  EXPECT_EQ(finding("ats").remedy,
            "remove noats from pci= on the kernel command line, then reboot");
  file("proc/cmdline", "pci=noatsx\n");
  EXPECT_EQ(outcome("ats"), Outcome::passed);
}

class VfAts : public AtsTest {
 protected:
  /// Of both VFs.
  void control(unsigned value, const std::string& driver, bool busMaster) {
    std::string config = configWith(0x0f, 0, value);
    config[4] = busMaster ? '\x04' : '\0';
    for (const std::size_t vf : {pf + 1, pf + 2}) {
      function(vf).driver = driver;
      file(vf, "config", config);
    }
  }
  void groupType(const std::string& type) {
    for (const std::size_t vf : {pf + 1, pf + 2}) {
      file("sys/kernel/iommu_groups/" + std::to_string(*function(vf).iommuGroup) + "/type", type);
    }
  }
};

TEST_F(VfAts, IsReadFromTheVf) {
  EXPECT_EQ(outcome("vf-ats"), Outcome::notObservable);
  EXPECT_THAT(finding("vf-ats").seen, testing::HasSubstr("configuration space of 2 VFs"));
  control(0x8000, "vfio-pci", true);
  EXPECT_EQ(outcome("vf-ats"), Outcome::passed);
  EXPECT_EQ(finding("vf-ats").seen, "enabled in 2 VFs");
  control(0x0000, "vfio-pci", true);
  EXPECT_EQ(outcome("vf-ats"), Outcome::failed);
  EXPECT_EQ(finding("vf-ats").subject, "0000:03:00.1");
  EXPECT_EQ(finding("vf-ats").seen, "disabled");
  file(pf + 1, "config", configWith(0x10));  // no capability
  EXPECT_EQ(finding("vf-ats").seen, "disabled");
}

// The IOMMU enables ATS with a domain that translates, so it may be off while a host with iommu=pt
// has the VF.
TEST_F(VfAts, MayBeOffUntilAGuestOpensTheVf) {
  control(0x0000, "mlx5_core", true);
  groupType("DMA-FQ\n");
  EXPECT_EQ(outcome("vf-ats"), Outcome::failed);
  groupType("identity\n");
  EXPECT_EQ(outcome("vf-ats"), Outcome::notObservable);
  EXPECT_THAT(finding("vf-ats").seen, testing::StartsWith("disabled in 2 VFs of the host"));
  control(0x0000, "vfio-pci", false);
  EXPECT_EQ(outcome("vf-ats"), Outcome::notObservable);
  control(0x0000, "vfio-pci", true);
  EXPECT_EQ(outcome("vf-ats"), Outcome::failed);
}

TEST_F(VfAts, DoesNotApplyWithoutVfsOrSharedSwitch) {
  control(0x0000, "vfio-pci", true);
  file(pf, "config", configWith(0x10));  // `ats` fails
  EXPECT_EQ(outcome("vf-ats"), Outcome::waived);
  file(pf, "config", configWith(0x0f));
  function(gpu).parent.reset();
  EXPECT_EQ(outcome("vf-ats"), Outcome::waived);
  function(gpu).parent = gpuPort;
  EXPECT_EQ(outcome("vf-ats"), Outcome::failed);
  function(pf).vendor = 0x8086;
  EXPECT_EQ(outcome("vf-ats"), Outcome::failed);  // it shows ATS
  file(pf, "config", std::string(64, '\0'));
  EXPECT_EQ(outcome("vf-ats"), Outcome::waived);
  function(pf).vendor = 0x15b3;
  EXPECT_EQ(outcome("vf-ats"), Outcome::failed);
  function(pf + 1).physicalFunction.reset();
  function(pf + 2).physicalFunction.reset();
  EXPECT_EQ(outcome("vf-ats"), Outcome::waived);
}

TEST(ConfigSpace, ReadsAtsControl) {
  EXPECT_EQ(atsEnabled(configWith(0x0f, 0, 0x8000)), true);
  EXPECT_EQ(atsEnabled(configWith(0x0f, 0, 0x001f)), false);
  EXPECT_EQ(atsEnabled(configWith(0x10)), std::nullopt);
  EXPECT_EQ(atsEnabled(configWith(0x0f, 0, 0x8000).substr(0, 0x14f)), std::nullopt);
  EXPECT_FALSE(isBusMaster(""));
}

}  // namespace
}  // namespace vfpass::doctor
