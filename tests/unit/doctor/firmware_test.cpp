#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "doctored_host.hpp"
#include "firmware_settings.hpp"

namespace vfpass::doctor {
namespace {

// The format of `mstconfig -e -d ADDRESS query` as posted publicly (rows in
// k8snetworkplumbingwg/sriov-network-operator#358); the values are made up.
constexpr std::string_view enhanced = R"(
Device #1:
----------

Device type:    ConnectX6
Name:           MCX653105A-HDA_Ax
Description:    ConnectX-6 VPI adapter card; HDR IB (200Gb/s) and 200GbE; single-port QSFP56
Device:         0000:03:00.0

Configurations:                              Default         Current         Next Boot
         MEMIC_BAR_SIZE                      0               0               0
         HOST_CHAINING_DESCRIPTORS           Array[0..7]     Array[0..7]     Array[0..7]
RO       FLEX_PARSER_PROFILE_ENABLE          0               0               0
*        NUM_OF_VFS                          8               8               16
         SRIOV_EN                            False(0)        True(1)         True(1)
*        ATS_ENABLED                         False(0)        False(0)        True(1)
         LINK_TYPE_P1                        IB(1)           ETH(2)          ETH(2)
The '*' shows parameters with next value different from default/current value.
)";

// Without -e (k8snetworkplumbingwg/sriov-network-device-plugin#601).
constexpr std::string_view nextBootOnly = R"(
Configurations:                              Next Boot
        ATS_ENABLED                                 False(0)
        SRIOV_EN                                    True(1)
)";

TEST(FirmwareSettings, ReadsEnhancedTable) {
  const auto settings = firmwareSettingsIn(enhanced);
  ASSERT_EQ(settings.size(), 4U);
  EXPECT_EQ(settings.at("NUM_OF_VFS").current, "8");
  EXPECT_EQ(settings.at("NUM_OF_VFS").nextBoot, "16");
  EXPECT_EQ(settings.at("LINK_TYPE_P1").current, "ETH(2)");
  EXPECT_EQ(toText(settings),
            "ATS_ENABLED False(0) True(1)\nLINK_TYPE_P1 ETH(2) ETH(2)\nNUM_OF_VFS 8 16\n"
            "SRIOV_EN True(1) True(1)");
  EXPECT_EQ(toText(firmwareSettingsFrom(toText(settings))), toText(settings));
}

TEST(FirmwareSettings, ReadsTableWithoutCurrentValues) {
  const auto settings = firmwareSettingsIn(nextBootOnly);
  EXPECT_EQ(settings.at("SRIOV_EN").current, "");
  EXPECT_EQ(settings.at("SRIOV_EN").nextBoot, "True(1)");
  EXPECT_EQ(firmwareSettingsFrom(toText(settings)).at("SRIOV_EN").current, "");
}

TEST(FirmwareSettings, IgnoresMalformedOutput) {
  EXPECT_TRUE(firmwareSettingsIn("").empty());
  EXPECT_TRUE(
      firmwareSettingsIn("-E- Failed to open device: 0000:03:00.0. Permission denied").empty());
  EXPECT_TRUE(firmwareSettingsIn("SRIOV_EN True(1) True(1)").empty());  // no heading
  const std::string heading = "Configurations: Default Current Next Boot\n";
  EXPECT_TRUE(firmwareSettingsIn(heading + "SRIOV_EN True(1)").empty());
  EXPECT_TRUE(firmwareSettingsIn(heading + "SRIOV_EN a b \x1b[31mred").empty());
  EXPECT_TRUE(firmwareSettingsIn(heading + "SRIOV_EN a b " + std::string(100, 'c')).empty());
  EXPECT_TRUE(firmwareSettingsIn(heading + std::string(1U << 20U, ' ')).empty());
  EXPECT_TRUE(firmwareSettingsFrom("SRIOV_EN \x1b[31m 1\nOTHER 1 1\nSRIOV_EN 1").empty());
  EXPECT_EQ(numberOf("True(1"), std::nullopt);
  EXPECT_EQ(numberOf("True"), std::nullopt);
}

/// A program that answers a query of named settings as mstconfig 4.21 does: it refuses names that
/// the card does not have, one at a time.
class NamedQuery : public testing::Test {
 protected:
  FirmwareSettings query(const std::set<std::string>& supported) {
    return queryCard("/usr/bin/mstconfig", {0, 3, 0, 0}, std::chrono::seconds(6),
                     [&](const auto& command, auto) -> std::optional<std::string> {
                       queries.push_back(command);
                       return answer(supported, command);
                     });
  }
  std::string answer(const std::set<std::string>& supported,
                     const std::vector<std::string>& command) const {
    std::string output = "Configurations:      Default     Current     Next Boot\n";
    const std::vector<std::string> names(command.begin() + 5, command.end());
    for (const std::string& name : names) {
      if (!supported.contains(name)) {
        return output + refusal + name + " parameter\n";
      }
      output += "  " + name + "   1   1   1\n";
    }
    return names.empty() ? std::string(enhanced) : output;
  }

  std::string refusal = "-E- The Device doesn't support ";
  std::vector<std::vector<std::string>> queries;
};

TEST_F(NamedQuery, NamesTheSettings) {
  const auto names = firmwareSettingNames();
  EXPECT_EQ(query({names.begin(), names.end()}).size(), names.size());
  ASSERT_EQ(queries.size(), 1U);
  EXPECT_THAT(queries[0], testing::IsSupersetOf({"/usr/bin/mstconfig", "-e", "-d", "0000:03:00.0",
                                                 "query", "SRIOV_EN", "NUM_OF_VFS"}));
}

TEST_F(NamedQuery, LeavesOutWhatTheCardDoesNotHave) {
  const auto settings = query({"SRIOV_EN", "NUM_OF_VFS", "LINK_TYPE_P1", "PF_NUM_OF_VF"});
  EXPECT_EQ(settings.size(), 4U);
  EXPECT_EQ(queries.size(), 1 + firmwareSettingNames().size() - 4);
  EXPECT_EQ(queries.back().size(), 5U + 4U);
}

TEST_F(NamedQuery, QueriesEverythingIfTheRefusalNamesNone) {
  refusal = "Usage: ";
  EXPECT_EQ(query({}).size(), 4U);
  ASSERT_EQ(queries.size(), 2U);
  EXPECT_EQ(queries.back().size(), 5U);
}

// The program could also change the settings.
TEST_F(NamedQuery, ChangesNoSetting) {
  query({"SRIOV_EN"});
  refusal = "Usage: ";
  query({});
  ASSERT_GT(queries.size(), 2U);
  for (const auto& command : queries) {
    ASSERT_GE(command.size(), 5U);
    EXPECT_EQ(command[4], "query");
    EXPECT_THAT(command, testing::Each(testing::Not(testing::HasSubstr("="))));
  }
}

TEST_F(NamedQuery, DoesNotAskAgainAfterATimeout) {
  const auto settings = queryCard("/usr/bin/mstconfig", {0, 3, 0, 0}, std::chrono::seconds(6),
                                  [&](const auto& command, auto) -> std::optional<std::string> {
                                    queries.push_back(command);
                                    return std::nullopt;
                                  });
  EXPECT_TRUE(settings.empty());
  EXPECT_EQ(queries.size(), 1U);
}

class Firmware : public testing::Test, public DoctoredHost {
 protected:
  Firmware() {
    function(pf).vendor = 0x15b3;
    function(pf).totalVfs = 8;
  }
  void settings(const std::string& text) const { file("vfpass/firmware/0000:03:00.0", text); }
};

TEST_F(Firmware, ComparesValuesNowAndAtNextBoot) {
  EXPECT_EQ(outcome("firmware-settings"), Outcome::notObservable);
  settings("SRIOV_EN True(1) True(1)\nNUM_OF_VFS 8 8\nATS_ENABLED True(1) True(1)\n");
  EXPECT_EQ(outcome("firmware-settings"), Outcome::passed);
  settings("SRIOV_EN True(1) True(1)\nNUM_OF_VFS 8 8\nATS_ENABLED False(0) True(1)\n");
  EXPECT_EQ(finding("firmware-settings").seen,
            "SRIOV_EN True(1), NUM_OF_VFS 8, ATS_ENABLED False(0) now, True(1) at the next boot");
  EXPECT_EQ(finding("firmware-settings").remedy, "power-cycle the machine");
  settings("SRIOV_EN True(1) False(0)\nNUM_OF_VFS 8 8\nATS_ENABLED True(1) False(0)\n");
  EXPECT_EQ(finding("firmware-settings").remedy,
            "mstconfig -d 0000:03:00.0 set SRIOV_EN=1 ATS_ENABLED=1, then power-cycle the machine");
}

TEST_F(Firmware, RequiresWhatMappingsNeed) {
  settings(
      "SRIOV_EN True(1) True(1)\nNUM_OF_VFS 8 8\nLINK_TYPE_P1 ETH(2) ETH(2)\n"
      "ATS_ENABLED True(1) True(1)\n");
  require({});
  requirements.vfs[0].infiniband = true;
  EXPECT_THAT(finding("firmware-settings").remedy, testing::HasSubstr("set LINK_TYPE_P1=1,"));
  function(pf).driver = "mlx4_core";  // one function has both ports
  EXPECT_EQ(outcome("firmware-settings"), Outcome::passed);
  function(pf).driver = "mlx5_core";
  requirements.vfs[0].infiniband = false;
  requirements.vfs[0].vlan = true;
  EXPECT_EQ(outcome("firmware-settings"), Outcome::passed);
  requirements.vfCounts[function(pf).address] = 32;
  EXPECT_THAT(finding("firmware-settings").remedy, testing::HasSubstr("set NUM_OF_VFS=32,"));
}

TEST_F(Firmware, RequiresAtsOnlyInRails) {
  settings("SRIOV_EN True(1) True(1)\nNUM_OF_VFS 8 8\nATS_ENABLED False(0) False(0)\n");
  EXPECT_EQ(outcome("firmware-settings"), Outcome::failed);
  function(pf).driver = "mlx4_core";  // its firmware has no such setting
  EXPECT_EQ(outcome("firmware-settings"), Outcome::passed);
  function(pf).driver = "mlx5_core";
  function(gpu).role = FunctionRole::other;
  EXPECT_EQ(outcome("firmware-settings"), Outcome::passed);
}

TEST_F(Firmware, IsNotObservableWithoutCurrentValues) {
  settings("SRIOV_EN - True(1)\nNUM_OF_VFS - 8\nATS_ENABLED - True(1)\n");
  EXPECT_EQ(outcome("firmware-settings"), Outcome::notObservable);
}

TEST_F(Firmware, HasOneFindingForEachCard) {
  builder.pf("0000:03:00.1", "mlx5_1", 0, nicPort);
  builder.topology.functions.back().vendor = 0x15b3;
  EXPECT_EQ(findings("firmware-settings").size(), 1U);
  for (auto& each : builder.topology.functions) {
    each.vendor = 0x8086;
  }
  EXPECT_EQ(outcome("firmware-settings"), Outcome::waived);
}

}  // namespace
}  // namespace vfpass::doctor
