#include "vfpass/doctor/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A PF with the netdev net-mlx5_0 at 0000:03:00.0.
class BootFiles : public testing::Test, public DoctoredHost {
 protected:
  BootFiles() { file("sys/class/net/net-mlx5_0/address", "02:00:00:00:00:AA\n"); }
  [[nodiscard]] std::vector<BootPolicy> policies() const {
    return bootPolicies(host::Root(tree.path()), builder.topology);
  }
  [[nodiscard]] BootPolicy only() const {
    const auto found = policies();
    EXPECT_THAT(found, SizeIs(1));
    return found.empty() ? BootPolicy{} : found.front();
  }
  [[nodiscard]] bool isOfPf() const { return only().pf == builder.topology.functions[pf].address; }
};

TEST_F(BootFiles, HostWithoutAnyHasNone) {
  file("etc/systemd/network/10.link", "[Match]\nOriginalName=*\n[Link]\nNamePolicy=kernel\n");
  file("etc/netplan/01.yaml", "network: {ethernets: {other: {dhcp4: true, mtu: 9000}}}\n");
  file("etc/NetworkManager/system-connections/a.nmconnection", "[connection]\nid=a\n[wifi]\n");
  EXPECT_THAT(policies(), IsEmpty());
}

TEST_F(BootFiles, SystemdSectionIsThatOfOneVf) {
  file("etc/systemd/network/10.link",
       "[Match]\nOriginalName=net-mlx*\n[SR-IOV]\nVirtualFunction=1\nVLANId=100\n"
       "QualityOfService=3\nVLANProtocol=802.1ad\nMACAddress=02:00:00:00:00:10\n"
       "MACSpoofCheck=no\nTrust=yes\nLinkState=auto\n");
  const BootPolicy policy = only();
  EXPECT_TRUE(isOfPf());
  EXPECT_EQ(policy.file, "/etc/systemd/network/10.link");
  EXPECT_EQ(policy.vf, 1U);
  EXPECT_EQ(policy.settings.vlan, (Vlan{100, 3, VlanProtocol::dot1ad}));
  EXPECT_EQ(policy.settings.mac, parseMacAddress("02:00:00:00:00:10"));
  EXPECT_EQ(policy.settings.spoofCheck, false);
  EXPECT_EQ(policy.settings.trust, true);
  EXPECT_EQ(policy.settings.linkState, LinkState::automatic);
  EXPECT_THAT(policy.remedy, HasSubstr("[SR-IOV] section"));
}

TEST_F(BootFiles, SystemdSelectsByNameMacPathAndDriver) {
  const auto matches = [&](const std::string& condition) {
    file("etc/systemd/network/10.link",
         "[Match]\n" + condition + "\n[Link]\nSR-IOVVirtualFunctions=4\nMTUBytes=9000\n");
    return policies();
  };
  for (const char* condition :
       {"OriginalName=net-mlx5_0", "MACAddress=02:00:00:00:00:aa", "Path=pci-0000:03:*",
        "Driver=mlx5_core", "OriginalName=a net-*", "OriginalName=!eth*"}) {
    ASSERT_THAT(matches(condition), SizeIs(1)) << condition;
    EXPECT_TRUE(isOfPf()) << condition;
    EXPECT_EQ(only().vfCount, 4U);
    EXPECT_EQ(only().mtu, 9000U);
  }
  for (const char* condition :
       {"OriginalName=eth0", "Path=pci-0000:04:*", "Driver=ixgbe", "OriginalName=!net* *"}) {
    EXPECT_THAT(matches(condition), IsEmpty()) << condition;
  }
  ASSERT_THAT(matches("Host=other"), SizeIs(1));
  EXPECT_FALSE(isOfPf());
}

TEST_F(BootFiles, OnlyTheFirstSystemdFileOfADeviceCounts) {
  file("etc/systemd/network/10.link",
       "[Match]\nOriginalName=net-mlx5_0\n[Link]\nSR-IOVVirtualFunctions=4\n");
  file("etc/systemd/network/20.link",
       "[Match]\nOriginalName=net-mlx5_0\n[Link]\nSR-IOVVirtualFunctions=8\n");
  EXPECT_EQ(only().vfCount, 4U);
  file("run/systemd/network/10.link", "[Match]\nOriginalName=x\n");  // hidden by the one in etc
  EXPECT_EQ(only().vfCount, 4U);
  file("etc/systemd/network/10.link.d/a.conf", "[SR-IOV]\nVirtualFunction=0\n");
  ASSERT_THAT(policies(), SizeIs(2));
  EXPECT_EQ(policies()[1].file, "/etc/systemd/network/10.link.d/a.conf");
}

TEST_F(BootFiles, NetworkManagerProfileHasCountAndVfs) {
  file("etc/NetworkManager/system-connections/pf.nmconnection",
       "[connection]\nid=pf\nuuid=0f5e9a3c-1111-4222-8333-944455566688\n"
       "interface-name=net-mlx5_0\n[wifi-security]\npsk=secret\n[ethernet]\nmtu=9000\n[sriov]\n"
       "total-vfs=4\nautoprobe-drivers=0\neswitch-mode=1\n"
       "vf.2=mac=02:00:00:00:00:10 vlans=100.5.ad spoof-check=true trust=false "
       "max-tx-rate=500\n");
  const auto found = policies();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].vfCount, 4U);
  EXPECT_EQ(found[0].probesVfs, false);
  EXPECT_EQ(found[0].eswitchMode, "switchdev");
  EXPECT_EQ(found[0].mtu, 9000U);
  EXPECT_THAT(found[0].remedy, HasSubstr("nmcli connection modify uuid"));
  EXPECT_EQ(found[1].pf, builder.topology.functions[pf].address);
  EXPECT_EQ(found[1].vf, 2U);
  EXPECT_EQ(found[1].settings.vlan, (Vlan{100, 5, VlanProtocol::dot1ad}));
  EXPECT_EQ(found[1].settings.rate, (Rate{0, 500}));
  for (const BootPolicy& each : found) {
    EXPECT_THAT(each.text, testing::Not(HasSubstr("secret")));
  }
}

TEST_F(BootFiles, NetworkManagerProfileWithoutDeviceIsUnclear) {
  file("etc/NetworkManager/system-connections/pf.nmconnection", "[connection]\nid=pf\n[sriov]\n");
  EXPECT_FALSE(isOfPf());
  EXPECT_EQ(only().vfCount, 0U);
  file("etc/NetworkManager/system-connections/pf.nmconnection",
       "[connection]\ninterface-name=other\n[sriov]\ntotal-vfs=4\n");
  EXPECT_THAT(policies(), IsEmpty());
}

TEST_F(BootFiles, IfcfgAndDefaultsOfNetworkManagerCount) {
  file("etc/sysconfig/network-scripts/ifcfg-pf",
       "DEVICE=\"net-mlx5_0\"\nSRIOV_TOTAL_VFS=4\nSRIOV_VF1=\"mac=02:00:00:00:00:10 trust=1\"\n");
  ASSERT_THAT(policies(), SizeIs(2));
  EXPECT_EQ(policies()[1].vf, 1U);
  EXPECT_EQ(policies()[1].settings.trust, true);
  file("etc/sysconfig/network-scripts/ifcfg-pf", "");
  file("etc/NetworkManager/conf.d/vfs.conf",
       "[device-pfs]\nmatch-device=interface-name:net-*\nsriov-num-vfs=8\n");
  EXPECT_TRUE(isOfPf());
  EXPECT_EQ(only().vfCount, 8U);
}

TEST_F(BootFiles, NetplanNamesDeviceByIdOrMatch) {
  file("etc/netplan/01.yaml",
       "network:\n  ethernets:\n    pf:\n      match: {macaddress: \"02:00:00:00:00:AA\"}\n"
       "      virtual-function-count: 4\n      embedded-switch-mode: legacy\n      mtu: 9000\n");
  EXPECT_TRUE(isOfPf());
  EXPECT_EQ(only().vfCount, 4U);
  EXPECT_EQ(only().eswitchMode, "legacy");
  EXPECT_EQ(only().mtu, 9000U);
  EXPECT_THAT(only().remedy, HasSubstr("netplan set"));
  // What another file says about the device counts as well.
  file("etc/netplan/02.yaml", "network: {ethernets: {pf: {virtual-function-count: 8}}}\n");
  ASSERT_THAT(policies(), SizeIs(2));
  EXPECT_EQ(policies()[1].pf, policies()[0].pf);
}

TEST_F(BootFiles, NetplanDefinitionOfVfIsKnownByItsNetdev) {
  const std::string text =
      "network:\n  ethernets:\n    net-mlx5_0: {}\n    vfnet:\n      link: net-mlx5_0\n"
      "      macaddress: \"02:00:00:00:00:10\"\n  vlans:\n    v5: {id: 5, link: vfnet, renderer: "
      "sriov}\n    v6: {id: 6, link: net-mlx5_0}\n";
  file("etc/netplan/01.yaml", text);
  ASSERT_THAT(policies(), SizeIs(2));
  EXPECT_EQ(policies()[0].vf, std::nullopt);
  for (Device& each : builder.topology.functions) {
    if (each.vfIndex == 1U) {
      each.netdevs.push_back({"vfnet", 9, false, false});
    }
  }
  EXPECT_EQ(policies()[0].vf, 1U);
  EXPECT_EQ(policies()[0].settings.mac, parseMacAddress("02:00:00:00:00:10"));
  EXPECT_EQ(policies()[1].vf, 1U);
  EXPECT_EQ(policies()[1].settings.vlan, (Vlan{5, 0, VlanProtocol::dot1q}));
}

TEST_F(BootFiles, OddFilesOfNetplanAreNoPolicies) {
  for (const char* text :
       {"network: [", "network: 5\n", "[]\n", "network: {ethernets: [a, b]}\n",
        "network: {ethernets: {a: 5, [b]: {virtual-function-count: 4}}}\n", "\xff\xfe", "&a [*a]",
        "network: {ethernets: {net-mlx5_0: {virtual-function-count: [4]}}}\n"}) {
    file("etc/netplan/01.yaml", text);
    EXPECT_THAT(policies(), IsEmpty()) << text;
  }
}

TEST_F(BootFiles, ScriptLineIsReadWithItsPfAndValue) {
  file("etc/rc.local", "#!/bin/sh\necho 4 > /sys/class/net/net-mlx5_0/device/sriov_numvfs\n");
  EXPECT_TRUE(isOfPf());
  EXPECT_EQ(only().vfCount, 4U);
  EXPECT_EQ(only().text, "sriov_numvfs in line 2");
  EXPECT_THAT(only().remedy, HasSubstr("/etc/rc.local"));
  file("etc/rc.local", "#!/bin/sh\necho $N > \"$dir\"/sriov_numvfs\n");
  EXPECT_FALSE(isOfPf());
  EXPECT_EQ(only().vfCount, std::nullopt);
}

TEST_F(BootFiles, IpLinkCommandOfScriptIsThatOfOneVf) {
  file("etc/rc.local",
       "#!/bin/sh\nfalse || /sbin/ip link set dev net-mlx5_0 vf 1 mac 02:00:00:00:00:10 vlan 7 "
       "qos 2 trust on; echo vf 3\nip link show vf 2\n");
  EXPECT_TRUE(isOfPf());
  EXPECT_EQ(only().vf, 1U);
  EXPECT_EQ(only().settings.vlan, (Vlan{7, 2, VlanProtocol::dot1q}));
  EXPECT_EQ(only().settings.trust, true);
  EXPECT_THAT(only().remedy, HasSubstr("line 2"));
  file("etc/rc.local", "#!/bin/sh\nip link set $PF vf $N mac $MAC\n");
  EXPECT_FALSE(isOfPf());
  EXPECT_EQ(only().vf, std::nullopt);
}

TEST_F(BootFiles, IpLinkCommandCanSetSeveralVfs) {
  file("etc/rc.local",
       "#!/bin/sh\nip link set net-mlx5_0 vf 0 mac 02:00:00:00:00:10 vf 1 vlan 7 trust on\n");
  const auto found = policies();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].vf, 0U);
  EXPECT_EQ(found[0].settings.mac, parseMacAddress("02:00:00:00:00:10"));
  EXPECT_EQ(found[0].settings.vlan, std::nullopt);
  EXPECT_EQ(found[1].vf, 1U);
  EXPECT_EQ(found[1].settings.mac, std::nullopt);
  EXPECT_EQ(found[1].settings.vlan, Vlan{7});
}

}  // namespace
}  // namespace vfpass::doctor
