#include <gtest/gtest.h>

#include "config_space.hpp"
#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

constexpr unsigned sixBits = 0x5f;  // all but egress control

/// 4096 bytes with an AER capability first, then ACS or ATS.
std::string configWith(unsigned capability, unsigned capable = 0, unsigned enabled = 0) {
  std::string config(4096, '\0');
  const auto word = [&](std::size_t at, unsigned value) {
    config[at] = static_cast<char>(value & 0xffU);
    config[at + 1] = static_cast<char>(value >> 8U);
  };
  word(0x100, 0x0001);
  word(0x102, 0x1482);  // the next one is at 0x148
  word(0x148, capability);
  word(0x14a, 0x0001);
  word(0x14c, capable);
  word(0x14e, enabled);
  return config;
}

std::string acs(unsigned enabled, unsigned capable = sixBits) {
  return configWith(0x0d, capable, enabled);
}

TEST(ConfigSpace, FindsAcsAndAts) {
  EXPECT_EQ(acsOf(acs(0x1d)).value().enabled, 0x1dU);
  EXPECT_EQ(acsOf(acs(0x1d)).value().capable, sixBits);
  EXPECT_FALSE(acsOf(configWith(0x0f)));
  EXPECT_TRUE(hasAts(configWith(0x0f)));
  EXPECT_FALSE(hasAts(acs(0)));
}

TEST(ConfigSpace, IgnoresTruncatedAndCircularCapabilityLists) {
  EXPECT_FALSE(acsOf(""));
  EXPECT_FALSE(acsOf(std::string(256, '\0')));
  EXPECT_FALSE(acsOf(acs(0x1d).substr(0, 0x14f)));
  EXPECT_FALSE(hasExtendedSpace(std::string(64, '\0')));
  std::string circle = configWith(0x02);
  circle[0x14b] = '\x10';  // back to 0x100
  EXPECT_FALSE(acsOf(circle));
  EXPECT_FALSE(acsOf(std::string(4096, '\xff')));
}

TEST(ConfigSpace, UsesTheKernelsAcsNotation) {
  EXPECT_EQ(acsText(0x1d), "0011101");
  EXPECT_EQ(acsText(0x40), "1000000");
  EXPECT_TRUE(matchesAcs(0x5d, "1x111x1"));
  EXPECT_FALSE(matchesAcs(0x1d, "1x111x1"));
  EXPECT_TRUE(matchesAcs(0x1d, "xx111x1"));
  EXPECT_FALSE(matchesAcs(0x15, "xx111x1"));
  EXPECT_TRUE(matchesAcs(0x00, "xx000x0"));
}

class AcsTest : public testing::Test, public DoctoredHost {
 protected:
  void fitForGuests() {
    file(rootPort, "config", acs(0x1d));
    file(nicPort, "config", acs(0x5d));
    file(gpuPort, "config", acs(0x1d));
  }
};

TEST_F(AcsTest, RequiresDirectTranslatedOnlyAtNicPort) {
  fitForGuests();
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  file(nicPort, "config", acs(0x1d));
  const Finding found = finding("acs");
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_EQ(found.subject, "0000:04:00.0 with mlx5_0");
  EXPECT_EQ(found.seen, "0000:02:00.0 0011101 for 1x111x1");
  EXPECT_EQ(found.remedy,
            "add \"pci=config_acs="
            "xx111x1@0000:00:01.0;1x111x1@0000:02:00.0;xx111x1@0000:02:01.0\" to the kernel "
            "command line, with the quotes also in the boot loader's configuration (GRUB takes an "
            "unquoted `;` for the end of the command), then reboot");
  file("proc/cmdline",
       "quiet pci=config_acs=xx111x1@0000:00:01.0;1x111x1@0000:02:00.0;xx111x1@0000:02:01.0\n");
  EXPECT_THAT(finding("acs").remedy, testing::HasSubstr("has the right argument already"));
}

// Compares every value of the seven bits at every port with the rules. Every port needs source
// validation, request and completion redirect and upstream forwarding, with any translation
// blocking; the NIC's port also needs direct translated.
TEST_F(AcsTest, JudgesEveryValueAtEveryPort) {
  constexpr unsigned values = 128;
  const auto isolates = [](unsigned bits) {
    const bool validation = (bits & 0x01U) != 0;
    const bool requests = (bits & 0x04U) != 0;
    const bool completions = (bits & 0x08U) != 0;
    const bool forwarding = (bits & 0x10U) != 0;
    return validation && requests && completions && forwarding;
  };
  for (unsigned bits = 0; bits < values; ++bits) {
    fitForGuests();
    file(nicPort, "config", acs(bits, 0x7f));
    const bool direct = (bits & 0x40U) != 0;
    EXPECT_EQ(outcome("acs") == Outcome::passed, isolates(bits) && direct) << bits;
    for (const std::size_t other : {gpuPort, rootPort}) {
      fitForGuests();
      file(other, "config", acs(bits, 0x7f));
      EXPECT_EQ(outcome("acs") == Outcome::passed, isolates(bits)) << bits;
    }
  }
}

TEST_F(AcsTest, NeverPassesWithTruncatedConfigurationSpace) {
  fitForGuests();
  const std::string whole = acs(0x5d);
  for (const std::size_t length : {0U, 1U, 63U, 64U, 256U, 259U, 260U, 0x148U, 0x14cU, 0x14fU}) {
    file(nicPort, "config", whole.substr(0, length));
    EXPECT_NE(outcome("acs"), Outcome::passed) << length;
  }
  file(nicPort, "config", whole.substr(0, 0x150));
  EXPECT_EQ(outcome("acs"), Outcome::passed);
}

TEST_F(AcsTest, ReportsBareMetalSetting) {
  fitForGuests();
  file(gpuPort, "config", acs(0x00));
  EXPECT_EQ(finding("acs").seen, "0000:02:01.0 0000000 for xx111x1 (the setting for bare metal)");
}

TEST_F(AcsTest, ReportsPortThatLacksAcsBits) {
  fitForGuests();
  file(nicPort, "config", acs(0x1d, 0x1f));
  EXPECT_EQ(finding("acs").seen,
            "0000:02:00.0 0011101 for 1x111x1 (the port supports only 0011111)");
  EXPECT_THAT(finding("acs").remedy, testing::StartsWith("no setting changes these ports"));
  file(nicPort, "config", configWith(0x0f));
  EXPECT_EQ(finding("acs").seen, "0000:02:00.0 has no ACS");
  EXPECT_THAT(finding("acs").remedy, testing::StartsWith("no setting changes these ports"));
  file(gpuPort, "config", acs(0));
  EXPECT_THAT(finding("acs").remedy,
              testing::HasSubstr("config_acs=xx111x1@0000:00:01.0;xx111x1@0000:02:01.0\""));
}

// Vera's root ports do not control completion redirect. The kernel takes that for hard-wired.
TEST_F(AcsTest, RequiresNoBitThatThePortLacks) {
  constexpr unsigned vera = 0x57;  // 1010111
  fitForGuests();
  file(rootPort, "config", acs(0x15, vera));
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  file(rootPort, "config", acs(0x11, vera));
  EXPECT_EQ(finding("acs").seen, "0000:00:01.0 0010001 for xx1x1x1");
  EXPECT_THAT(finding("acs").remedy, testing::HasSubstr("xx1x1x1@0000:00:01.0;"));
}

// Its ports have settings of their own, which the argument would undo.
TEST_F(AcsTest, LeavesPortsOfDirectNicAlone) {
  fitForGuests();
  file(gpuPort, "config", acs(0x15));
  EXPECT_EQ(outcome("acs"), Outcome::failed);
  const auto dma = builder.function(FunctionRole::other, "0000:04:00.1", 0, gpuPort);
  function(dma).path = "dma";
  function(dma).vendor = 0x15b3;
  function(dma).device = 0x2100;
  function(dma).iommuGroup = function(gpu).iommuGroup;
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  EXPECT_EQ(finding("acs").remedy, "rdma_topo check");
}

TEST_F(AcsTest, RequiresIsolationAtAllPortsWithoutSharedSwitch) {
  const auto other = builder.hostBridge("pci0000:80", 1);
  function(nicPort).parent.reset();
  function(nicPort).hostBridge = other;
  function(nicPort).role = FunctionRole::rootPort;
  function(pf).hostBridge = other;
  fitForGuests();
  file(nicPort, "config", acs(0x1d));
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  file(nicPort, "config", acs(0x01));
  EXPECT_EQ(finding("acs").seen, "0000:02:00.0 0000001 for xx111x1");
}

TEST_F(AcsTest, IsNotObservableFromHeaderOnly) {
  fitForGuests();
  file(nicPort, "config", std::string(64, '\0'));
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  file(gpuPort, "config", acs(0x00));  // a wrong value at a readable port still fails
  EXPECT_EQ(outcome("acs"), Outcome::failed);
}

TEST_F(AcsTest, RemedyNamesKernelVersionOfArgument) {
  fitForGuests();
  file(nicPort, "config", acs(0x1d));
  file("proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
  EXPECT_THAT(finding("acs").remedy,
              testing::StartsWith("needs Linux 6.11, 6.15 for several ports, this is 6.1: boot"));
  file("proc/sys/kernel/osrelease", "6.12.10-amd64\n");
  EXPECT_THAT(finding("acs").remedy,
              testing::StartsWith(
                  "needs Linux 6.15, or commit 9cf8a952d57b, for several ports, this is 6.12: "));
  file("proc/sys/kernel/osrelease", "6.15.0\n");
  EXPECT_THAT(finding("acs").remedy, testing::StartsWith("add \"pci=config_acs="));
}

TEST_F(AcsTest, RemedyForOneVmKeepsPortsOfOthers) {
  fitForGuests();
  file(nicPort, "config", acs(0x1d));
  const auto second = builder.gpu("0000:05:00.0", 0, gpuPort);
  function(second).path = "second";
  requirements.oneVm = true;
  require({});
  requirements.functions.push_back(function(second).address);
  ASSERT_EQ(findings("acs").size(), 1U);
  EXPECT_THAT(finding("acs").remedy, testing::HasSubstr("xx111x1@0000:02:01.0"));
}

// All requests pass the root complex there, where the IOMMU translates them.
TEST_F(AcsTest, RequiresNoAtsWithoutSharedSwitch) {
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

TEST_F(AcsTest, IsWaivedWithoutGpu) {
  function(gpu).role = FunctionRole::other;
  EXPECT_EQ(outcome("acs"), Outcome::waived);
  EXPECT_EQ(outcome("ats"), Outcome::waived);
}

TEST_F(AcsTest, RemedyEnablesAtsInFirmware) {
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

TEST_F(AcsTest, NamesNoToolOfAnotherVendorForAts) {
  file(pf, "config", configWith(0x10));
  for (const auto& [vendor, driver] : std::initializer_list<std::pair<std::uint16_t, const char*>>{
           {0x14e4, "bnxt_en"}, {0x8086, "ice"}, {0x15b3, "mlx4_core"}}) {
    function(pf).vendor = vendor;
    function(pf).driver = driver;
    EXPECT_EQ(outcome("ats"), Outcome::failed) << driver;
    EXPECT_EQ(finding("ats").seen, "absent") << driver;
    EXPECT_THAT(finding("ats").remedy,
                testing::AllOf(testing::HasSubstr("vendor's tool"),
                               testing::Not(testing::HasSubstr("mstconfig"))))
        << driver;
  }
}

}  // namespace
}  // namespace vfpass::doctor
