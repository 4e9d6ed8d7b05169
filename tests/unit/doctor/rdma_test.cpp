#include <gtest/gtest.h>

#include "doctored_host.hpp"

namespace vfpass::doctor {
namespace {

class Rdma : public testing::Test, public DoctoredHost {
 protected:
  std::string secureBoot(bool on) const {
    file("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
         std::string("\x06\x00\x00\x00", 4) + (on ? '\1' : '\0'));
    return {};
  }
  void arp(const std::string& netdev, int ignore, int announce) const {
    const std::string folder = "proc/sys/net/ipv4/conf/" + netdev;
    file(folder + "/arp_ignore", std::to_string(ignore) + "\n");
    file(folder + "/arp_announce", std::to_string(announce) + "\n");
  }
};

TEST_F(Rdma, ReportsUnsignedModulesUnderSecureBoot) {
  secureBoot(false);
  EXPECT_EQ(outcome("module-signatures"), Outcome::waived);
  secureBoot(true);
  EXPECT_EQ(outcome("module-signatures"), Outcome::passed);
  file("var/lib/dkms/nvidia/580.95.05/source", "");
  EXPECT_EQ(outcome("module-signatures"), Outcome::notObservable);  // built but not loaded
  file("sys/module/nvidia/taint", "OE\n");
  EXPECT_THAT(finding("module-signatures").remedy, testing::StartsWith("mokutil --import"));
  file("sys/module/nvidia/taint", "PO\n");
  EXPECT_EQ(outcome("module-signatures"), Outcome::passed);
}

TEST_F(Rdma, ChecksSignaturesEnforcedWithoutSecureBoot) {
  file("proc/cmdline", "quiet module.sig_enforce\n");
  EXPECT_EQ(outcome("module-signatures"), Outcome::passed);
  file("proc/cmdline", "quiet\n");
  file("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  EXPECT_EQ(outcome("module-signatures"), Outcome::waived);
  file("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  EXPECT_EQ(outcome("module-signatures"), Outcome::passed);
}

// OFED's mlx5_core has a version, its mlx5_ib has none. Both are out-of-tree modules.
TEST_F(Rdma, AcceptsModulesOfOneRelease) {
  EXPECT_EQ(outcome("ofed"), Outcome::waived);
  file("sys/module/mlx5_core/version", "25.10-1.7.1\n");
  file("sys/module/mlx5_core/taint", "OE\n");
  EXPECT_EQ(finding("ofed").remedy, "modprobe mlx5_ib");
  file("sys/module/mlx5_ib/taint", "OE\n");
  EXPECT_EQ(finding("ofed").seen, "out of tree (OFED 25.10-1.7.1)");
  EXPECT_EQ(outcome("ofed"), Outcome::passed);
  tree.remove("sys/module/mlx5_core/version");
  file("sys/module/mlx5_core/taint", "\n");
  file("sys/module/mlx5_ib/taint", "\n");
  EXPECT_EQ(finding("ofed").seen, "the kernel's own");
  EXPECT_EQ(outcome("ofed"), Outcome::passed);
}

TEST_F(Rdma, ReportsModulesOfDifferentReleases) {
  file("sys/module/mlx5_core/version", "25.10-1.7.1\n");
  file("sys/module/mlx5_core/taint", "O\n");
  file("sys/module/mlx5_ib/taint", "\n");
  EXPECT_EQ(finding("ofed").seen,
            "mlx5_core: out of tree (OFED 25.10-1.7.1); mlx5_ib: the kernel's own");
  EXPECT_EQ(outcome("ofed"), Outcome::failed);
  file("etc/os-release", "ID=debian\n");
  EXPECT_THAT(finding("ofed").remedy, testing::StartsWith("run update-initramfs -u -k all,"));
  file("etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n");
  EXPECT_THAT(finding("ofed").remedy, testing::StartsWith("run dracut -f --regenerate-all,"));
  file("sys/module/mlx5_core/taint", "\n");
  file("sys/module/mlx5_ib/taint", "OE\n");
  EXPECT_EQ(outcome("ofed"), Outcome::failed);
  tree.remove("sys/module/mlx5_ib/taint");  // built in
  file("sys/module/mlx5_ib/parameters/dc_cnak_qp_depth", "1\n");
  EXPECT_EQ(outcome("ofed"), Outcome::notObservable);
}

TEST_F(Rdma, RequiresInfinibandForGuids) {
  require({});
  EXPECT_EQ(outcome("link-type"), Outcome::waived);
  requirements.vfs[0].vlan = true;
  EXPECT_EQ(outcome("link-type"), Outcome::passed);
  requirements.vfs[0].vlan = false;
  requirements.vfs[0].infiniband = true;
  EXPECT_EQ(
      finding("link-type").remedy,
      "mstconfig -d 0000:03:00.0 set LINK_TYPE_P1=1, then power-cycle the machine; or correct "
      "the mapping");
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  EXPECT_EQ(outcome("link-type"), Outcome::passed);
}

/// A PF on Ethernet, of which a mapping requires InfiniBand.
class WrongLinkType : public Rdma {
 protected:
  WrongLinkType() {
    require({});
    requirements.vfs[0].infiniband = true;
  }
  std::string remedy() const { return finding("link-type").remedy; }
  void settings(const std::string& text) const { file("vfpass/firmware/0000:03:00.0", text); }
};

TEST_F(WrongLinkType, IsChangedForTheFunctionsOwnPort) {
  function(pf).address.function = 1;
  requirements.vfs[0].pf = function(pf).address;
  EXPECT_THAT(remedy(), testing::StartsWith("mstconfig -d 0000:03:00.1 set LINK_TYPE_P2=1,"));
}

TEST_F(WrongLinkType, IsNotSetTwice) {
  settings("LINK_TYPE_P1 ETH(2) IB(1)\n");
  EXPECT_EQ(remedy(), "power-cycle the machine; or correct the mapping");
  settings("LINK_TYPE_P1 IB(1) IB(1)\n");
  EXPECT_THAT(remedy(), testing::StartsWith("power-cycle the machine, also if"));
  settings("LINK_TYPE_P1 ETH(2) ETH(2)\n");
  EXPECT_THAT(remedy(), testing::HasSubstr("set LINK_TYPE_P1=1,"));
}

TEST_F(WrongLinkType, IsNotChangedWhereItCannotBe) {
  settings("SRIOV_EN True(1) True(1)\n");  // a card with Ethernet only
  EXPECT_EQ(remedy(),
            "correct the mapping: the card's firmware has no LINK_TYPE_P1, so the type of its port "
            "is fixed");
  function(pf).driver = "mlx4_core";
  EXPECT_EQ(remedy(), "correct the mapping: choose a PF whose port is infiniband");
  function(pf).driver = "bnxt_en";
  function(pf).vendor = 0x14e4;
  EXPECT_EQ(remedy(), "correct the mapping: choose a PF whose port is infiniband");
}

TEST_F(WrongLinkType, IsNotChangedForMappingsThatDisagree) {
  require({});
  requirements.vfs[1].vlan = true;
  EXPECT_THAT(remedy(), testing::StartsWith("correct the mappings: they require both"));
  settings("SRIOV_EN True(1) True(1)\nNUM_OF_VFS 8 8\nLINK_TYPE_P1 ETH(2) ETH(2)\n");
  EXPECT_THAT(finding("firmware-settings").remedy,
              testing::Not(testing::HasSubstr("LINK_TYPE_P1")));
}

TEST_F(WrongLinkType, IsNotConcludedFromMissingDrivers) {
  function(pf).rdma.clear();
  EXPECT_EQ(outcome("link-type"), Outcome::notObservable);
  EXPECT_EQ(remedy(), "modprobe mlx5_ib");
  function(pf).netdevs.clear();
  function(pf).classCode = 0x020700;  // an InfiniBand port has no netdev without its RDMA device
  EXPECT_THAT(remedy(), testing::StartsWith("run `modprobe mlx5_ib` and `modprobe ib_ipoib`"));
  function(pf).classCode = 0x020000;  // the driver has given up after a firmware error
  EXPECT_THAT(remedy(), testing::HasSubstr("`journalctl -k --grep 'mlx5_core 0000:03:00.0'`"));
  EXPECT_EQ(finding("pf-link").remedy, remedy());
  function(pf).driver.clear();
  EXPECT_THAT(remedy(), testing::StartsWith("bind it to its own driver"));
}

TEST_F(WrongLinkType, IsNotTheFaultOfPortWithoutIpoib) {
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  function(pf).netdevs.clear();
  EXPECT_EQ(outcome("link-type"), Outcome::passed);
  EXPECT_EQ(outcome("pf-netdev"), Outcome::failed);
}

class MissingNetdev : public Rdma {
 protected:
  MissingNetdev() {
    require({});
    function(pf).netdevs.clear();
    function(pf).driver = "mlx5_core";
    function(pf).classCode = 0x020000;
  }
};

TEST_F(Rdma, AcceptsPfWithNetdev) {
  EXPECT_EQ(outcome("pf-netdev"), Outcome::passed);
  EXPECT_EQ(finding("pf-netdev").seen, "net-mlx5_0");
}

TEST_F(Rdma, FailsPfWithDetachedNetdev) {
  require({});
  file("vfpass/detached/net-mlx5_0", "1\n");
  EXPECT_EQ(outcome("pf-netdev"), Outcome::failed);
  EXPECT_EQ(finding("pf-netdev").seen, "it has a netdev that its driver has detached");
}

// The kernel sets GUIDs through the netdev of ib_ipoib, which udev does not load.
TEST_F(MissingNetdev, OfInfinibandPortNeedsIpoib) {
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  EXPECT_EQ(outcome("pf-netdev"), Outcome::failed);
  EXPECT_THAT(finding("pf-netdev").remedy,
              testing::StartsWith("run `modprobe ib_ipoib`, and install rdma-core"));
  file(pf, "sriov/0/node", "00:00:00:00:00:00:00:00\n");
  EXPECT_EQ(finding("pf-netdev").seen, "OFED's files");
  EXPECT_EQ(outcome("pf-netdev"), Outcome::passed);
  function(pf).rdma.clear();
  function(pf).classCode = 0x020700;
  EXPECT_EQ(outcome("pf-netdev"), Outcome::failed) << "files do not replace the RDMA device";
}

TEST_F(MissingNetdev, AndRdmaDeviceIsFailureOfDriverOrFirmware) {
  const std::string afterFailure =
      "; after a failure, unbind and bind the driver while nothing uses its VFs, or power-cycle "
      "the machine";
  function(pf).rdma.clear();
  EXPECT_EQ(outcome("pf-netdev"), Outcome::failed);
  EXPECT_THAT(finding("pf-netdev").seen, testing::HasSubstr("neither netdev nor RDMA device"));
  EXPECT_EQ(finding("pf-netdev").remedy,
            "see the driver's reason with `journalctl -k --grep 'mlx5_core 0000:03:00.0'` and the "
            "firmware's state with `devlink health show pci/0000:03:00.0`" +
                afterFailure);
  function(pf).driver = "bnxt_en";
  EXPECT_EQ(
      finding("pf-netdev").remedy,
      "see the driver's reason with `journalctl -k --grep 'bnxt_en 0000:03:00.0'`" + afterFailure);
}

TEST_F(MissingNetdev, IsThatOfOtherPfOfSocketDirectCard) {
  const auto other = builder.pf("0000:05:00.0", "mlx5_1", 0, rootPort);
  function(other).driver = "mlx5_core";
  function(pf).serial = "MT2301X00001";
  function(other).serial = "MT2301X00002";
  EXPECT_THAT(finding("pf-netdev").seen, testing::HasSubstr("network namespace"));
  function(other).serial = function(pf).serial;
  EXPECT_EQ(outcome("pf-netdev"), Outcome::failed);
  EXPECT_THAT(finding("pf-netdev").remedy, testing::StartsWith("choose PF 0000:05:00.0;"));
  function(other).address.function = 1;  // another port of the card
  EXPECT_THAT(finding("pf-netdev").seen, testing::HasSubstr("network namespace"));
}

TEST_F(MissingNetdev, OfPfInGuestNeedsHostDriver) {
  function(pf).driver = "vfio-pci";
  EXPECT_EQ(finding("pf-netdev").seen, "it is bound to vfio-pci, for use in a guest");
  function(pf).driver.clear();
  EXPECT_EQ(finding("pf-netdev").seen, "it is bound to no driver");
}

TEST_F(MissingNetdev, OfUnusedPfIsWarning) {
  const auto spare = builder.pf("0000:05:00.0", "mlx5_1", 0, rootPort);
  function(spare).netdevs.clear();
  requirements.vfs[0].pf = function(pf).address;
  const auto found = findings("pf-netdev");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].outcome, Outcome::warning);
}

TEST_F(Rdma, RequiresActivePortInRail) {
  EXPECT_EQ(outcome("pf-link"), Outcome::passed);
  function(pf).rdma[0].ports[0].state = "DOWN";
  EXPECT_EQ(finding("pf-link").seen, "port down");
  EXPECT_EQ(finding("pf-link").remedy,  // its netdev is up already
            "check cable, transceiver and switch: ethtool net-mlx5_0");
  function(pf).netdevs[0].up = false;
  EXPECT_THAT(finding("pf-link").remedy, testing::StartsWith("ip link set dev net-mlx5_0 up"));
  function(pf).rdma[0].ports[0] = {1, "INIT", LinkLayer::infiniband, 0};
  EXPECT_EQ(finding("pf-link").remedy, "start a subnet manager for this fabric");
}

TEST_F(Rdma, AllowsInactiveSparePort) {
  const auto spare = builder.pf("0000:05:00.0", "mlx5_1", 0, rootPort);
  function(spare).rdma[0].ports[0].state = "DOWN";
  EXPECT_EQ(outcome("pf-link"), Outcome::passed);
  require({});
  requirements.vfs[0].pf = function(spare).address;
  EXPECT_EQ(outcome("pf-link"), Outcome::failed);
}

TEST_F(Rdma, RequiresMtuOfMappings) {
  require({});
  EXPECT_EQ(outcome("pf-mtu"), Outcome::waived);
  requirements.vfs[0].mtu = 9000;
  EXPECT_EQ(outcome("pf-mtu"), Outcome::notObservable);
  file(pf, "net/net-mlx5_0/mtu", "9000\n");
  EXPECT_EQ(outcome("pf-mtu"), Outcome::passed);
  file(pf, "net/net-mlx5_0/mtu", "1500\n");
  EXPECT_THAT(finding("pf-mtu").remedy, testing::StartsWith("ip link set dev net-mlx5_0 mtu 9000"));
}

TEST_F(Rdma, RequiresVirtualPortsInSubnetManager) {
  EXPECT_EQ(outcome("opensm"), Outcome::waived);
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  EXPECT_EQ(outcome("opensm"), Outcome::notObservable);  // it may run on a switch
  file("etc/opensm/opensm.conf", "# virt_enabled 2\nlmc 0\n");
  EXPECT_EQ(finding("opensm").seen, "not set");
  file("etc/opensm/opensm.conf", "lmc 0\nvirt_enabled 0\n");
  EXPECT_EQ(finding("opensm").seen, "virt_enabled 0");
  file("etc/opensm/opensm.conf", "lmc 0\nvirt_enabled 2\n");
  EXPECT_EQ(outcome("opensm"), Outcome::passed);
}

TEST_F(Rdma, ReadsOpenSmConfigurationOfEveryDistribution) {
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  for (const std::string path : {"etc/opensm/opensm.conf", "etc/rdma/opensm.conf",
                                 "etc/opensm.conf", "var/cache/opensm/opensm.opts"}) {
    file(path, "lmc 0\nvirt_enabled\t0\nvirt_enabled  2\n");  // the last line counts
    EXPECT_EQ(outcome("opensm"), Outcome::passed) << path;
    EXPECT_EQ(finding("opensm").subject, "/" + path);
    file(path, "virt_enabled 0\n");
    EXPECT_EQ(finding("opensm").remedy,
              "in /" + path + ", set virt_enabled 2; then `systemctl restart opensm`");
    tree.remove(path);
  }
}

TEST_F(Rdma, ReadsConfigurationOfEveryOpenSmInstance) {
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  file("etc/rdma/opensm.conf.1", "virt_enabled 2\n");
  file("etc/rdma/opensm.conf.2", "virt_enabled 1\n");
  file("etc/rdma/opensm.conf.rpmsave", "virt_enabled 0\n");
  ASSERT_EQ(findings("opensm").size(), 2U);
  EXPECT_EQ(finding("opensm").subject, "/etc/rdma/opensm.conf.2");
  file("etc/init.d/opensmd", "");
  EXPECT_THAT(finding("opensm").remedy, testing::EndsWith("`systemctl restart opensmd`"));
}

TEST_F(Rdma, ReadsOnlyFilesOfRunningOpenSmInstances) {
  function(pf).rdma[0].ports[0].linkLayer = LinkLayer::infiniband;
  file("etc/opensm/opensm.conf", "virt_enabled 0\n");
  file("opt/ufm/opensm.conf", "virt_enabled 2\n");
  file("vfpass/opensm", "/opt/ufm/opensm.conf\n");
  EXPECT_EQ(outcome("opensm"), Outcome::passed);
  file("vfpass/opensm", "default\n/opt/ufm/opensm.conf\n");
  EXPECT_EQ(finding("opensm").subject, "/etc/opensm/opensm.conf");
  EXPECT_EQ(outcome("opensm"), Outcome::failed);
  file("vfpass/opensm", "none\n");
  EXPECT_EQ(finding("opensm").seen, "OpenSM does not run on this host");
  EXPECT_EQ(outcome("opensm"), Outcome::notObservable);
}

TEST_F(Rdma, RequiresArpSettingsOnMultiHomedHost) {
  EXPECT_EQ(outcome("arp"), Outcome::waived);
  builder.pf("0000:05:00.0", "mlx5_1", 0, rootPort);
  EXPECT_EQ(outcome("arp"), Outcome::notObservable);
  arp("net-mlx5_0", 1, 2);
  arp("net-mlx5_1", 0, 2);
  EXPECT_EQ(
      finding("arp").remedy,
      "sysctl -w net.ipv4.conf.net-mlx5_1.arp_ignore=1 net.ipv4.conf.net-mlx5_1.arp_announce=2");
  arp("all", 1, 0);
  EXPECT_EQ(outcome("arp"), Outcome::passed);
  arp("all", 0, 0);
  function(pf).netdevs[0].name = "eth0.5";
  arp("eth0.5", 0, 0);
  EXPECT_EQ(findings("arp")[0].remedy,
            "sysctl -w net/ipv4/conf/eth0.5/arp_ignore=1 net/ipv4/conf/eth0.5/arp_announce=2");
}

TEST_F(Rdma, RefusesArpSettingsThatLeavePortsMixed) {
  builder.pf("0000:05:00.0", "mlx5_1", 0, rootPort);
  arp("net-mlx5_0", 1, 2);
  arp("net-mlx5_1", 2, 2);
  EXPECT_EQ(outcome("arp"), Outcome::passed);
  arp("net-mlx5_1", 1, 1);
  EXPECT_EQ(finding("arp").seen, "arp_ignore 1, arp_announce 1");
  arp("net-mlx5_1", 3, 2);
  EXPECT_EQ(finding("arp").seen, "arp_ignore 3, arp_announce 2");
}

}  // namespace
}  // namespace vfpass::doctor
