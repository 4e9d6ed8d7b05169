#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class NetworkManagerDhcp : public testing::Test, public DoctoredHost {};

TEST_F(NetworkManagerDhcp, ReportsNetworkManagerDhcpOnVfs) {
  EXPECT_EQ(finding("networkmanager-dhcp").seen, "no NetworkManager");
  file("etc/NetworkManager/NetworkManager.conf", "[main]\nplugins=keyfile\n");
  EXPECT_EQ(outcome("networkmanager-dhcp"), Outcome::waived);
  function(pf + 1).netdevs.push_back({"ens1v0", 0, false, false});
  EXPECT_EQ(outcome("networkmanager-dhcp"), Outcome::waived);  // another vendor's VF
  function(pf + 1).vendor = 0x15b3;
  EXPECT_EQ(outcome("networkmanager-dhcp"), Outcome::failed);
  file("etc/NetworkManager/conf.d/vfs.conf",
       "[keyfile]\nunmanaged-devices=interface-name:ens*v*\n");
  EXPECT_EQ(outcome("networkmanager-dhcp"), Outcome::passed);
}

/// A host with NetworkManager and a VF that has a netdev.
class NetworkManagerAndVf : public NetworkManagerDhcp {
 protected:
  NetworkManagerAndVf() {
    file("etc/NetworkManager/NetworkManager.conf", "[main]\nplugins=keyfile\n");
    function(pf + 1).netdevs.push_back({"ens1v0", 0, false, false});
    function(pf + 1).vendor = 0x15b3;
  }
};

TEST_F(NetworkManagerAndVf, AreAcceptedWithTheRuleOfThePackage) {
  const std::filesystem::path source = VFPASS_SOURCE_DIR;
  std::ifstream stream(source / "packaging/network/95-vfpass-vf.rules");
  const std::string rules{std::istreambuf_iterator<char>(stream), {}};
  file("usr/share/vfpass/network/95-vfpass-vf.rules", rules);
  const Finding before = finding("networkmanager-dhcp");
  EXPECT_EQ(before.outcome, Outcome::failed);
  EXPECT_THAT(before.remedy,
              testing::MatchesRegex("ln -s /.*/vfpass/network/95-vfpass-vf.rules "
                                    "/etc/udev/rules.d/ && udevadm control --reload"));
  tree.link("etc/udev/rules.d/95-vfpass-vf.rules",
            "../../../usr/share/vfpass/network/95-vfpass-vf.rules");
  const Finding after = finding("networkmanager-dhcp");
  EXPECT_EQ(after.outcome, Outcome::passed);
  EXPECT_EQ(after.seen, "NM_UNMANAGED in /etc/udev/rules.d/95-vfpass-vf.rules");
}

TEST_F(NetworkManagerAndVf, AreAcceptedWithAnAdministratorsRule) {
  file("usr/lib/udev/rules.d/50-own.rules",
       "SUBSYSTEM==\"net\", TEST==\"device/physfn\", ENV{NM_UNMANAGED}=\"1\"\n");
  EXPECT_EQ(outcome("networkmanager-dhcp"), Outcome::passed);
  file("etc/udev/rules.d/50-own.rules", "# nothing\n");  // hides the other
  EXPECT_EQ(outcome("networkmanager-dhcp"), Outcome::failed);
}

TEST_F(NetworkManagerAndVf, AreReportedWithRulesForOtherDevices) {
  file("usr/lib/udev/rules.d/85-nm-unmanaged.rules",
       "ENV{INTERFACE}==\"lxdbr*\", ENV{NM_UNMANAGED}=\"1\"\n");
  file("run/udev/rules.d/90-managed.rules",
       "SUBSYSTEM==\"net\", TEST==\"device/physfn\", ENV{NM_UNMANAGED}=\"0\"\n");
  file("etc/udev/rules.d/README",
       "SUBSYSTEM==\"net\", TEST==\"device/physfn\", ENV{NM_UNMANAGED}=\"1\"\n");
  file("etc/udev/rules.d/91-off.rules",
       "# SUBSYSTEM==\"net\", TEST==\"device/physfn\", ENV{NM_UNMANAGED}=\"1\"\n");
  EXPECT_EQ(outcome("networkmanager-dhcp"), Outcome::failed);
}

TEST(KnownSettings, KeepSettingsButNoSecrets) {
  EXPECT_EQ(
      knownSettings("etc/netplan/a.yaml",
                    "wifis: {x: {password: hunter2, virtual-function-count: 8, key: swordfish}}\n"),
      "");
  EXPECT_EQ(knownSettings("etc/netplan/a.yaml",
                          "network: {wifis: {x: {password: a}}, ethernets: {e: {mtu: 1, "
                          "virtual-function-count: 8}, v: {link: e, addresses: [::1/1]}}}\n"),
            "network:\n  ethernets:\n    e:\n      virtual-function-count: 8\n"
            "    v:\n      link: e\n");
  EXPECT_EQ(
      knownSettings("proc/cmdline", "root=/dev/sda rd.iscsi.password=x iommu=pt pci=realloc\n"),
      "iommu=pt\npci=realloc\n");
  EXPECT_EQ(knownSettings("etc/NetworkManager/system-connections/w", "psk=secret\n"), "");
  const std::string rule = "TEST==\"device/physfn\", ENV{ID}=\"secret\", ENV{NM_UNMANAGED}=\"1\"\n";
  const std::string kept = knownSettings("etc/udev/rules.d/x.rules", rule);
  EXPECT_EQ(kept, "nm_unmanaged}=\"1\nphysfn\"\n");  // both settings of the line
  EXPECT_EQ(knownSettings("etc/udev/rules.d/x.rules", kept), kept);
  for (const auto& [path, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"etc/netplan/a.yaml", "network: {ethernets: {\"a.b\": {virtual-function-count: 8}}}"},
           {"etc/netplan/a.yaml", "{virtual-function-count: 8"},
           {"etc/systemd/network/a.link", "[Link]\nSR-IOVVirtualFunctions = 4\n[SR-IOV]\nVLANId=1"},
           {"etc/NetworkManager/system-connections/a", "[wifi-security]\npsk=x\n[sriov]\n"},
           {"etc/sysconfig/network-scripts/ifcfg-a", "UUID=1\nSRIOV_TOTAL_VFS=4\nKEY=x\n"}}) {
    const std::string once = knownSettings(path, text);
    EXPECT_FALSE(once.empty()) << path;
    EXPECT_EQ(knownSettings(path, once), once);  // a snapshot of a snapshot
    EXPECT_THAT(once, testing::Not(testing::HasSubstr("x")));
  }
}

TEST(Doctor, ReportsEveryCheckOnEmptyHost) {
  const hosts::SysfsTree tree;
  const host::Root root(tree.path());
  const auto found = examine(root, {}, {});
  EXPECT_GE(found.size(), 30U);
  for (const Diagnosis& each : found) {
    EXPECT_FALSE(each.why.empty());
    EXPECT_FALSE(each.finding.seen.empty()) << each.finding.key;
    EXPECT_TRUE(each.finding.outcome != Outcome::failed || !each.finding.remedy.empty())
        << each.finding.key;
  }
}

}  // namespace

}  // namespace vfpass::doctor
