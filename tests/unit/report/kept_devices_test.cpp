#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "fake/temporary_folder.hpp"
#include "samples.hpp"
#include "vfpass/report/result_report.hpp"

namespace vfpass::report {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

Lease keptInfinibandLease() {
  Lease lease = samples::lease();
  lease.entry = "rail1";
  lease.pf = {0x10000, 0xd8, 0, 1};
  lease.device = {0x10000, 0xd8, 0, 2};
  VfSettings settings;
  settings.linkState = LinkState::enable;
  settings.nodeGuid = Guid{0x0200000000000001};
  settings.portGuid = Guid{0x0200000000000002};
  vfOf(lease).settings = settings;
  vfOf(lease).infiniband = true;
  return lease;
}

Inventory twoPorts() {
  Inventory inventory = samples::inventory();
  inventory.pfs[1].netdevs = {{"ibp216s0f1", 0, true}};
  return inventory;
}

TEST(KeptDevicesReport, VfsAreCreatedBeforeTheyAreSet) {
  const auto kept = keptDevices(
      "train0", {samples::lease(), keptInfinibandLease(), samples::functionLease()}, twoPorts());
  EXPECT_THAT(
      kept.commands,
      ElementsAre(
          "[ \"$(cat /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs)\" -gt 0 ] || echo 4 > "
          "/sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs",
          "[ \"$(cat /sys/bus/pci/devices/10000:d8:00.1/sriov_numvfs)\" -gt 0 ] || echo 1 > "
          "/sys/bus/pci/devices/10000:d8:00.1/sriov_numvfs",
          "ip link set dev ens1f0np0 vf 0 mac 02:11:22:33:44:55",
          "ip link set dev ens1f0np0 vf 0 vlan 100 qos 3 proto 802.1ad",
          "ip link set dev ens1f0np0 vf 0 max_tx_rate 1000 min_tx_rate 0",
          "ip link set dev ens1f0np0 vf 0 spoofchk on", "ip link set dev ens1f0np0 vf 0 state auto",
          "ip link set dev ens1f0np0 vf 0 trust off",
          "ip link set dev ibp216s0f1 vf 0 state enable",
          "ip link set dev ibp216s0f1 vf 0 node_guid 02:00:00:00:00:00:00:01",
          "ip link set dev ibp216s0f1 vf 0 port_guid 02:00:00:00:00:00:00:02"));
}

TEST(KeptDevicesReport, SettingsThatLibvirtOrTheDriverDecidesAreLeftOut) {
  Lease lease = samples::lease();
  vfOf(lease).interfaceForm = true;
  vfOf(lease).settings.rate = Rate{};
  vfOf(lease).refused = {Attribute::trust};
  const auto kept = keptDevices("train0", {lease}, samples::inventory());
  ASSERT_EQ(kept.commands.size(), 3U);
  EXPECT_THAT(kept.commands[1], HasSubstr("spoofchk on"));
  EXPECT_THAT(kept.commands[2], HasSubstr("state auto"));
}

TEST(KeptDevicesReport, FunctionsAloneNeedNothing) {
  const auto kept = keptDevices("train0", {samples::functionLease()}, samples::inventory());
  EXPECT_TRUE(kept.commands.empty());
  EXPECT_EQ(kept.unitName, "");
  EXPECT_EQ(kept.unit, "");
}

// systemd.service(5): `$` is doubled, and `"` and `\` are escaped; systemd.unit(5): `%` everywhere.
TEST(KeptDevicesReport, UnitRunsTheCommandsOnceTheInterfacesAreThere) {
  Inventory inventory = samples::inventory();
  inventory.pfs[0].netdevs = {{"ens1-a", 0, true}};
  Lease lease = samples::lease();
  vfOf(lease).settings = {};
  vfOf(lease).settings.trust = true;
  const auto kept = keptDevices("50% of\n/a b", {lease}, inventory);
  EXPECT_EQ(kept.unitName,
            "vfs-of-50--of--a-b-" + toString(lease.domain).substr(0, 8) + ".service");
  const std::string netdev = "sys-subsystem-net-devices-ens1\\x2da.device";
  EXPECT_EQ(
      kept.unit,
      "[Unit]\n"
      "Description=VM 50%% of /a b: virtual functions\n"
      "Before=libvirtd.service virtqemud.service\n"
      "Wants=" +
          netdev +
          "\n"
          "After=" +
          netdev +
          "\n"
          "\n"
          "[Service]\n"
          "Type=oneshot\n"
          "RemainAfterExit=yes\n"
          "ExecStart=/bin/sh -c \"[ \\\"$$(cat /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs)\\\" "
          "-gt 0 ] || echo 4 > /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs\"\n"
          "ExecStart=/bin/sh -c \"ip link set dev ens1-a vf 0 trust on\"\n"
          "\n"
          "[Install]\n"
          "WantedBy=multi-user.target\n");
}

class KeptDevicesOfAnyName : public testing::TestWithParam<std::pair<const char*, const char*>> {};

// systemd.syntax(7): a `\` at the end would make the next line a part of the description.
TEST_P(KeptDevicesOfAnyName, DescriptionIsOneLine) {
  const auto& [name, words] = GetParam();
  const auto kept = keptDevices(name, {samples::lease()}, samples::inventory());
  EXPECT_THAT(kept.unit, StartsWith(std::string("[Unit]\nDescription=VM ") + words +
                                    ": virtual functions\nBefore=libvirtd.service "
                                    "virtqemud.service\nWants="));
  EXPECT_THAT(kept.unitName, MatchesRegex("vfs-of-[A-Za-z0-9_.-]+[.]service"));
}

INSTANTIATE_TEST_SUITE_P(Cases, KeptDevicesOfAnyName,
                         testing::Values(std::pair("train0", "train0"), std::pair("a\\", "a\\"),
                                         std::pair("a\n[Service]\n\\", "a [Service] \\"),
                                         std::pair("%i%%", "%%i%%%%"),
                                         std::pair("$a \"b' ;", "$a \"b' ;"),
                                         std::pair("a\r\x1b", "a\\x0d\\x1b")));

TEST(KeptDevicesReport, UnitsOfTwoVmsAreTwoFiles) {
  const auto unitOf = [](const std::string& name) {
    return keptDevices(name, {samples::lease()}, samples::inventory()).unitName;
  };
  EXPECT_EQ(unitOf("a-b"), "vfs-of-a-b.service");
  EXPECT_NE(unitOf("a b"), unitOf("a-b"));
  EXPECT_NE(unitOf(std::string(64, 'a') + "0"), unitOf(std::string(64, 'a')));
}

// dev_valid_name() of the kernel forbids only `/`, `:` and white space.
TEST(KeptDevicesReport, NameOfAnInterfaceIsOneWord) {
  Inventory inventory = samples::inventory();
  inventory.pfs[0].netdevs = {{"a\\$b%'\"", 0, true}};
  Lease lease = samples::lease();
  vfOf(lease).settings = {};
  vfOf(lease).settings.trust = true;
  const auto kept = keptDevices("train0", {lease}, inventory);
  EXPECT_THAT(kept.commands, Contains("ip link set dev 'a\\$b%'\\''\"' vf 0 trust on"));
  EXPECT_THAT(kept.unit,
              HasSubstr("Wants=sys-subsystem-net-devices-a\\x5c\\x24b\\x25\\x27\\x22.device\n"));
  EXPECT_THAT(kept.unit, HasSubstr("ExecStart=/bin/sh -c \"ip link set dev "
                                   "'a\\\\$$b%%'\\\\''\\\"' vf 0 trust on\"\n"));
}

// What systemd says of such a unit, where systemd is installed.
TEST(KeptDevicesReport, SystemdAcceptsTheUnit) {
  if (std::system("command -v systemd-analyze >/dev/null") != 0) {  // NOLINT
    GTEST_SKIP() << "needs systemd-analyze";
  }
  Inventory inventory = samples::inventory();
  inventory.pfs[0].netdevs = {{"a\\$b%'\"", 0, true}};
  const auto kept = keptDevices("50% $a \"b'\\", {samples::lease()}, inventory);
  const fake::TemporaryFolder folder;
  const auto unit = folder.path() / kept.unitName;
  std::ofstream(unit) << kept.unit;
  const std::string command = "systemd-analyze verify --man=no --recursive-errors=no '" +
                              unit.string() + "' >'" + (folder.path() / "said").string() + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);  // NOLINT
  std::stringstream said;
  said << std::ifstream(folder.path() / "said").rdbuf();
  EXPECT_THAT(said.str(), Not(HasSubstr(kept.unitName)));
}

}  // namespace
}  // namespace vfpass::report
