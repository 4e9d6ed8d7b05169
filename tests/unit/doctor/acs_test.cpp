#include <gtest/gtest.h>

#include "acs_host.hpp"

namespace vfpass::doctor {
namespace {

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

/// 256 bytes with a PCI Express capability of this type.
std::string bridgeOfType(unsigned type) {
  std::string config(256, '\0');
  config[0x06] = 0x10;
  config[0x34] = 0x60;
  config[0x60] = 0x10;
  config[0x62] = static_cast<char>(type << 4U);
  return config;
}

TEST(ConfigSpace, DistinguishesConventionalBridges) {
  EXPECT_TRUE(isConventionalBridge(bridgeOfType(7)));
  EXPECT_TRUE(isConventionalBridge(bridgeOfType(8)));
  for (const unsigned type : {4U, 5U, 6U}) {
    EXPECT_FALSE(isConventionalBridge(bridgeOfType(type))) << type;
  }
  EXPECT_TRUE(isConventionalBridge(std::string(256, '\0')));
  EXPECT_FALSE(isConventionalBridge(std::string(64, '\0')));  // without root
  EXPECT_FALSE(isConventionalBridge(""));
  EXPECT_FALSE(isConventionalBridge(std::string(4096, '\0')));
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

// The port isolates all the same: traffic to the GPU makes a detour through the root complex.
TEST_F(AcsTest, OnlyWarnsOfPortThatLacksDirectTranslated) {
  fitForGuests();
  file(nicPort, "config", acs(0x1d, 0x1f));
  EXPECT_EQ(outcome("acs"), Outcome::warning);
  EXPECT_EQ(finding("acs").seen,
            "0000:02:00.0 0011101 without direct translated (the port supports only 0011111)");
  EXPECT_THAT(finding("acs").remedy, testing::StartsWith("no setting changes these ports"));
  file(nicPort, "config", configWith(0x0f));
  EXPECT_EQ(finding("acs").seen, "0000:02:00.0 has no ACS");
  EXPECT_THAT(finding("acs").remedy, testing::StartsWith("no setting changes these ports"));
  file(gpuPort, "config", acs(0));
  EXPECT_EQ(outcome("acs"), Outcome::failed);
  EXPECT_THAT(finding("acs").remedy,
              testing::HasSubstr("config_acs=xx111x1@0000:00:01.0;xx111x1@0000:02:01.0\""));
  file(nicPort, "config", acs(0x01, 0x1f));
  EXPECT_THAT(finding("acs").remedy, testing::HasSubstr(";xx111x1@0000:02:00.0;"));
}

// The kernel knows ports that isolate without the capability; its groups show them.
TEST_F(AcsTest, LeavesPortWithoutAcsToTheKernelsGroups) {
  fitForGuests();
  file(rootPort, "config", configWith(0x0f));
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  EXPECT_THAT(finding("acs").seen, testing::HasSubstr("0000:00:01.0 has no ACS; the kernel"));
  const auto group = function(gpu).iommuGroup;
  function(gpu).iommuGroup = function(pf + 1).iommuGroup;
  EXPECT_EQ(outcome("acs"), Outcome::failed);
  EXPECT_THAT(finding("acs").remedy, testing::StartsWith("no setting changes these ports"));
  function(gpu).iommuGroup.reset();
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  function(gpu).iommuGroup = group;
  function(pf + 1).physicalFunction.reset();
  function(pf + 2).physicalFunction.reset();
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  EXPECT_THAT(finding("acs").seen, testing::HasSubstr("not judged here"));
}

// On the card of an AMD GPU.
TEST_F(AcsTest, NeedsNoAcsInSwitchWithOnePort) {
  const auto inner = builder.function(FunctionRole::upstreamPort, "0000:05:00.0", 0, gpuPort);
  const auto only = builder.function(FunctionRole::downstreamPort, "0000:06:00.0", 0, inner);
  function(inner).path = "inner";
  function(only).path = "only";
  function(gpu).parent = only;
  fitForGuests();
  file(only, "config", configWith(0x0f));
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  file(only, "config", acs(0x00));
  EXPECT_EQ(outcome("acs"), Outcome::failed);
  file(only, "config", configWith(0x0f));
  const auto second = builder.function(FunctionRole::downstreamPort, "0000:06:01.0", 0, inner);
  function(second).path = "second";
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
}

// Of nested switches, requests turn in the port directly below the common one (rdma_topo's inline
// topology); the ports further down send them up in any case.
TEST_F(AcsTest, RequiresDirectTranslatedOnlyWhereRequestsTurn) {
  const auto inner = builder.function(FunctionRole::upstreamPort, "0000:05:00.0", 0, nicPort);
  const auto lowest = builder.function(FunctionRole::downstreamPort, "0000:06:00.0", 0, inner);
  function(inner).path = "inner";
  function(lowest).path = "lowest";
  function(pf).parent = lowest;
  fitForGuests();
  file(lowest, "config", acs(0x1d));
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  file(nicPort, "config", acs(0x1d));
  EXPECT_EQ(finding("acs").seen, "0000:02:00.0 0011101 for 1x111x1");
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

// rdma_topo: "advertises P2P Completion Redirect as read-only and disabled".
TEST_F(AcsTest, RequiresNoCompletionRedirectOfVera) {
  for (const std::uint16_t device : std::initializer_list<std::uint16_t>{0x2f95, 0x2f96}) {
    fitForGuests();
    function(rootPort).vendor = 0x10de;
    function(rootPort).device = device;
    file(rootPort, "config", acs(0x15, 0x5f));
    EXPECT_EQ(outcome("acs"), Outcome::passed);
    file(rootPort, "config", acs(0x14, 0x5f));
    EXPECT_THAT(finding("acs").remedy, testing::HasSubstr("xx1x1x1@0000:00:01.0;"));
  }
}

TEST_F(AcsTest, RequiresNoDirectTranslatedForNicWithoutAts) {
  fitForGuests();
  file(nicPort, "config", acs(0x1d));
  file(pf, "config", configWith(0x10));
  EXPECT_EQ(outcome("acs"), Outcome::failed);  // ATS can be switched on in this one
  function(pf).vendor = 0x8086;
  function(pf).driver = "ice";
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  file(pf, "config", std::string(64, '\0'));
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  file(pf, "config", configWith(0x0f));
  EXPECT_EQ(outcome("acs"), Outcome::failed);
}

// Settings of ports that are not ours, as rdma_topo writes them, stay in the argument.
TEST_F(AcsTest, RemedyKeepsOtherPortsOfPresentArgument) {
  fitForGuests();
  file(nicPort, "config", acs(0x1d));
  file("proc/cmdline",
       "quiet \"pci=noaer,config_acs=xx110x1@0002:02:00.0;xx000x0@0000:02:00.0;x$(x)@1\" ro\n");
  const std::string remedy = finding("acs").remedy;
  EXPECT_THAT(remedy, testing::StartsWith("remove the present config_acs= from the kernel"));
  EXPECT_THAT(remedy, testing::HasSubstr("pci=config_acs=xx111x1@0000:00:01.0;1x111x1@0000:02:00.0;"
                                         "xx111x1@0000:02:01.0;xx110x1@0002:02:00.0\""));
  file("proc/cmdline",
       "\"pci=config_acs=xx111x1@0000:02:01.0;1x111x1@0000:02:00.0;xx111x1@0000:00:01.0\"\n");
  EXPECT_THAT(finding("acs").remedy, testing::HasSubstr("has the right argument already"));
}

TEST_F(AcsTest, JudgesNothingBelowUnknownBridges) {
  fitForGuests();
  function(upstream).role = FunctionRole::bridge;
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  EXPECT_THAT(finding("acs").seen, testing::StartsWith("not judged here: 0000:01:00.0 above them"));
  function(upstream).role = FunctionRole::upstreamPort;
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  file(upstream, "config", bridgeOfType(7));
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  file(upstream, "config", bridgeOfType(5));
  EXPECT_EQ(outcome("acs"), Outcome::passed);
  function(gpu).path = "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e1:00.0";
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
  EXPECT_THAT(finding("acs").seen, testing::HasSubstr("Intel VMD"));
  for (const std::string path : {"pci0000:00/0000:04:00.0", "platform/x/pci0000:00/0000:04:00.0",
                                 "/pci", "/pci0000:00", ""}) {
    function(gpu).path = path;
    EXPECT_EQ(outcome("acs"), Outcome::passed) << path;
  }
  function(gpu).parent.reset();  // both on the root bus
  function(pf).parent.reset();
  EXPECT_EQ(outcome("acs"), Outcome::notObservable);
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
  file("proc/sys/kernel/osrelease", "6.1.0-30-amd64\n");
  file("proc/cmdline",
       "pci=config_acs=xx111x1@0000:00:01.0;1x111x1@0000:02:00.0;xx111x1@0000:02:01.0\n");
  EXPECT_EQ(
      finding("acs").remedy,
      "needs Linux 6.11, 6.15 for several ports, this is 6.1: boot a newer kernel; the kernel "
      "command line has the right argument already: see `dmesg | grep -i acs`");
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

TEST_F(AcsTest, IsWaivedWithoutGpu) {
  function(gpu).role = FunctionRole::other;
  EXPECT_EQ(outcome("acs"), Outcome::waived);
  EXPECT_EQ(outcome("ats"), Outcome::waived);
  EXPECT_EQ(outcome("vf-ats"), Outcome::waived);
}

}  // namespace
}  // namespace vfpass::doctor
