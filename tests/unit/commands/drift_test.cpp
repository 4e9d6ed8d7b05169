#include "drift.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::commands {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FunctionDriftTest : public testing::Test {
 protected:
  FunctionDriftTest() {
    lease.part = LeasedFunction{};
    lease.domainName = "train0";
    lease.entry = "gpu0";
    lease.pf = lease.device = *parsePciAddress("0000:3a:00.0");
    lease.pfPath = "pci0000:39/0000:3a:00.0";
    lease.state = LeaseState::running;
    lease.bootId = "boot";
    Device function;
    function.address = lease.device;
    function.path = lease.pfPath;
    function.driver = "vfio-pci";
    inventory.functions = {function};
  }
  std::vector<std::string> drift(bool active = true) {
    return kernelDrift(lease, inventory, "boot", active);
  }

  Lease lease;
  Inventory inventory;
};

TEST_F(FunctionDriftTest, ReportsNothingForRunningFunctionBoundToVfio) {
  EXPECT_THAT(drift(), IsEmpty());
}

TEST_F(FunctionDriftTest, ReportsMissingOrMovedFunctionInAnyState) {
  lease.state = LeaseState::reserved;
  inventory.functions[0].path = "elsewhere";
  EXPECT_THAT(drift(), ElementsAre(AllOf(
                           HasSubstr("kernel: PCI function 0000:3a:00.0 is now at elsewhere; "),
                           HasSubstr("`vfpass detach train0`"))));
  inventory.functions.clear();
  EXPECT_THAT(drift(),
              ElementsAre(AllOf(HasSubstr("kernel: PCI function 0000:3a:00.0 does not exist; "),
                                HasSubstr("`vfpass attach train0`"))));
}

TEST_F(FunctionDriftTest, ChecksDriverOnlyWhileTheGuestRuns) {
  inventory.functions[0].driver = "nvidia";
  EXPECT_THAT(drift(), ElementsAre(HasSubstr(
                           "kernel: PCI function 0000:3a:00.0 is not bound to vfio-pci; shut "
                           "train0 down, then start it again")));
  lease.bootId = "the previous boot";
  EXPECT_THAT(drift(), IsEmpty())
      << "after a reboot it is bound to the host's driver until prepare";
  lease.bootId = "boot";
  lease.state = LeaseState::reserved;
  EXPECT_THAT(drift(), IsEmpty());
}

TEST_F(FunctionDriftTest, ReportsGuestStoppedWithoutRelease) {
  EXPECT_THAT(drift(false), ElementsAre(HasSubstr("run `vfpass recover` to reset the function")));
}

TEST_F(FunctionDriftTest, IgnoresPfAtTheSameAddress) {
  PhysicalFunction pf;
  pf.address = lease.device;
  inventory.pfs = {pf};
  EXPECT_THAT(drift(), IsEmpty()) << "a PF passed through as a whole has no VF 0";
}

TEST(PfDrift, ReportsPfWithoutWhichNoStartWorks) {
  Lease lease;
  PhysicalFunction pf;
  pf.address = lease.pf;
  pf.driver = "mlx5_core";
  pf.netdevs = {{"eth0"}};
  Inventory inventory;
  inventory.pfs = {pf};
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", false), IsEmpty());
  inventory.pfs[0].driver.clear();  // a NIC is listed without its driver, too
  inventory.pfs[0].netdevs.clear();
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", false),
              ElementsAre(AllOf(HasSubstr("kernel: PF 0000:00:00.0 is bound to no driver; "),
                                HasSubstr("bind it to its own driver"))));
}

TEST(AttributeDrift, LeavesOutWhatTheDriverRefused) {
  Lease lease;
  lease.domainName = "train0";
  lease.state = LeaseState::running;
  lease.bootId = "boot";
  vfOf(lease).settings.spoofCheck = true;
  vfOf(lease).settings.trust = false;
  PhysicalFunction pf;
  pf.driver = "mlx5_core";
  pf.netdevs = {{"ens1f0np0"}};
  pf.vfs.resize(1);
  pf.vfs[0].driver = "vfio-pci";
  pf.vfs[0].settings.spoofCheck = false;
  Inventory inventory;
  inventory.pfs = {pf};
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", true),
              ElementsAre(HasSubstr("spoof-check is off, attach set on")));
  EXPECT_THAT(unobservedAttributes(lease, inventory, "boot"), ElementsAre("trust"));
  vfOf(lease).refused = {Attribute::spoofCheck, Attribute::trust};
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", true), IsEmpty());
  EXPECT_THAT(unobservedAttributes(lease, inventory, "boot"), IsEmpty());
}

TEST(VfDrift, NamesTheDriverThatTheLeaseRequires) {
  Lease lease;
  lease.domainName = "train0";
  lease.state = LeaseState::running;
  lease.bootId = "boot";
  vfOf(lease).migrationDriver = "mlx5_vfio_pci";
  PhysicalFunction pf;
  pf.driver = "mlx5_core";
  pf.netdevs = {{"ens1f0np0"}};
  pf.vfs.resize(1);
  pf.vfs[0].driver = "vfio-pci";
  Inventory inventory;
  inventory.pfs = {pf};
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", true),
              ElementsAre(HasSubstr("is not bound to mlx5_vfio_pci")));
  inventory.pfs[0].vfs[0].driver = "mlx5_vfio_pci";
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", true), IsEmpty());
}

TEST(AttributeDrift, OfVectorsNeedsAStop) {
  Lease lease;
  lease.domainName = "train0";
  lease.state = LeaseState::running;
  lease.bootId = "boot";
  vfOf(lease).settings.msixVectors = 16;
  PhysicalFunction pf;
  pf.driver = "mlx5_core";
  pf.netdevs = {{"ens1f0np0"}};
  pf.vfs.resize(1);
  pf.vfs[0].driver = "vfio-pci";
  pf.vfs[0].settings.msixVectors = 8;
  Inventory inventory;
  inventory.pfs = {pf};
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", true),
              ElementsAre("kernel: msix-vectors is 8, attach set 16; shut train0 down, then start "
                          "it again, to set it"));
}

TEST(VfDrift, RestartCreatesVfsOnlyForAPfWithoutAny) {
  Lease lease;
  lease.domainName = "train0";
  lease.state = LeaseState::running;
  lease.bootId = "boot";
  vfOf(lease).index = 2;
  PhysicalFunction pf;
  pf.driver = "mlx5_core";
  pf.netdevs = {{"ens1f0np0"}};
  Inventory inventory;
  inventory.pfs = {pf};
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", true),
              ElementsAre(AllOf(HasSubstr("VF 2 does not exist; shut train0 down"),
                                HasSubstr("start it again"))));
  inventory.pfs[0].vfs.resize(1);
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", true),
              ElementsAre("kernel: VF 2 does not exist; the next start of train0 is refused until "
                          "PF 0000:00:00.0 has it: raise its `virtual-function-count` in host.yaml "
                          "and run `vfpass host apply` once no VM uses VFs of this PF"));
}

class AttributesToSetTest : public testing::Test {
 protected:
  AttributesToSetTest() {
    lease.bootId = "boot";
    vfOf(lease).settings.mac = parseMacAddress("02:00:00:00:00:01");
    vfOf(lease).settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    vfOf(lease).settings.trust = false;
    inventory.pfs.resize(1);
    inventory.pfs[0].vfs.resize(1);
    seen() = vfOf(lease).settings;
  }
  VfSettings& seen() { return inventory.pfs[0].vfs[0].settings; }
  std::vector<std::string> toSet() { return attributesToSet(lease, inventory, "boot"); }

  Lease lease;
  Inventory inventory;
};

TEST_F(AttributesToSetTest, NamesWhatSomebodyChangedBeforeTheStart) {
  EXPECT_THAT(toSet(), IsEmpty()) << "as attach left it";
  seen().vlan = Vlan{5, 0, VlanProtocol::dot1q};
  seen().trust = true;
  EXPECT_THAT(toSet(), ElementsAre(AllOf(HasSubstr("vlan 100"), HasSubstr("instead of 5")),
                                   "trust off instead of on"));
  seen().vlan = neutralSettings(false).vlan;
  EXPECT_THAT(toSet(), ElementsAre(HasSubstr("vlan 100"), HasSubstr("trust"))) << "removed";
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", false),
              testing::Not(testing::Contains(HasSubstr("vlan"))));
}

TEST_F(AttributesToSetTest, NeutralValuesAfterAStopAreExpected) {
  seen() = neutralSettings(false);
  EXPECT_THAT(toSet(), IsEmpty());
  seen().vlan = Vlan{5, 0, VlanProtocol::dot1q};
  EXPECT_THAT(toSet(), ElementsAre(HasSubstr("instead of 5")));
}

// A stop leaves the vectors alone.
TEST_F(AttributesToSetTest, KeptVectorsDoNotShowThatTheGuestWasNotStopped) {
  vfOf(lease).settings.msixVectors = 16;
  seen() = neutralSettings(false);
  seen().msixVectors = 16;
  EXPECT_THAT(toSet(), IsEmpty());
  seen().msixVectors = 8;
  EXPECT_THAT(toSet(), ElementsAre("msix-vectors 16 instead of 8"));
}

TEST_F(AttributesToSetTest, OnlyOfStoppedGuestsSinceTheBoot) {
  seen().vlan = Vlan{5, 0, VlanProtocol::dot1q};
  lease.state = LeaseState::running;
  EXPECT_THAT(toSet(), IsEmpty()) << "that is drift";
  lease.state = LeaseState::reserved;
  lease.bootId = "the previous boot";
  EXPECT_THAT(toSet(), IsEmpty());
}

// mlx5 removes the netdev of a card that has died, and its VFs stay. Nothing else is observable
// then.
TEST(PortDrift, ReportsAFailedCardInAnyState) {
  Lease lease;
  lease.pf = *parsePciAddress("0000:3b:00.0");
  lease.bootId = "boot";
  vfOf(lease).settings.spoofCheck = true;
  PhysicalFunction pf;
  pf.address = lease.pf;
  pf.driver = "mlx5_core";
  pf.linkLayer = LinkLayer::ethernet;
  pf.vfs.resize(1);
  pf.vfs[0].driver = "vfio-pci";
  Inventory inventory;
  inventory.pfs = {pf};
  for (const LeaseState state : {LeaseState::running, LeaseState::reserved}) {
    lease.state = state;
    EXPECT_THAT(kernelDrift(lease, inventory, "boot", true),
                ElementsAre(AllOf(HasSubstr("kernel: PF 0000:3b:00.0"),
                                  HasSubstr("the driver or the firmware has failed"),
                                  HasSubstr("devlink health show pci/0000:3b:00.0"))));
  }
  inventory.pfs[0].netdevs = {{"ens1f0np0"}};
  EXPECT_THAT(kernelDrift(lease, inventory, "boot", true), IsEmpty());
}

TEST(DomainDrift, NamesTheCommandThatFixesIt) {
  Lease lease;
  lease.entry = "rail0";
  lease.persistent = false;
  EXPECT_THAT(domainDrift(nullptr, {lease}, {}), ElementsAre(HasSubstr("`vfpass gc`")));
  lease.persistent = true;
  lease.domainName = "my vm";
  EXPECT_THAT(domainDrift(nullptr, {lease}, {}), ElementsAre(HasSubstr("`vfpass detach 'my vm'`")));
  lease.persistent = false;
  DomainDescription domain;
  domain.name = "train0";
  EXPECT_THAT(domainDrift(&domain, {lease}, {}),
              ElementsAre(AllOf(HasSubstr("has stopped"), HasSubstr("`vfpass gc`"))));
  domain.active = true;
  domain.liveXml =
      "<domain><name>a</name><uuid>0f5e9a3c-1111-4222-8333-944455566677</uuid><devices/></domain>";
  EXPECT_THAT(domainDrift(&domain, {lease}, {}), IsEmpty()) << "not plugged yet";
  lease.state = LeaseState::running;
  EXPECT_THAT(domainDrift(&domain, {lease}, {}),
              ElementsAre(AllOf(HasSubstr("does not have rail0"), HasSubstr("`vfpass attach"))));
  domain.name = "my vm";
  EXPECT_THAT(domainDrift(&domain, {lease}, {}),
              ElementsAre(HasSubstr("`vfpass attach 'my vm'` to plug it again")));
}

TEST(DomainDrift, ReportsAnotherDeviceWithTheAliasOfALease) {
  Lease lease;
  lease.entry = "rail0";
  lease.persistent = false;
  lease.state = LeaseState::running;
  lease.device = *parsePciAddress("0000:3b:00.2");
  DomainDescription domain;
  domain.name = "train0";
  domain.active = true;
  domain.liveXml =
      "<domain><name>a</name><uuid>0f5e9a3c-1111-4222-8333-944455566677</uuid><devices>"
      "<hostdev mode='subsystem' type='pci' managed='no'><source><address bus='0x99'/></source>"
      "<alias name='ua-vfpass-rail0'/><address type='pci' bus='6'/></hostdev></devices></domain>";
  EXPECT_THAT(domainDrift(&domain, {lease}, {}),
              ElementsAre(AllOf(HasSubstr("running domain: VF 'rail0': the XML claims host device "
                                          "0000:99:00.0, the lease records 0000:3b:00.2"),
                                HasSubstr("shut train0 down, then start it again"))));
}

TEST(DomainDrift, ReportsMetadataWithoutSeal) {
  DomainDescription domain;
  domain.name = "train0";
  domain.persistent = true;
  domain.active = true;
  domain.persistentXml = domain.liveXml =
      "<domain><name>a</name><uuid>0f5e9a3c-1111-4222-8333-944455566677</uuid><metadata>"
      "<v:domain xmlns:v='https://vfpass.org/xmlns/domain/1' version='1' "
      "uuid='0f5e9a3c-1111-4222-8333-944455566677'/></metadata><devices/></domain>";
  EXPECT_THAT(domainDrift(&domain, {}, {}),
              ElementsAre(AllOf(HasSubstr("XML: its vfpass metadata has no seal"),
                                HasSubstr("`vfpass attach train0`")),
                          HasSubstr("running domain: its vfpass metadata has no seal")));
}

class PoolDriftTest : public testing::Test {
 protected:
  PoolDriftTest() {
    lease.domainName = "train0";
    lease.pf = *parsePciAddress("0000:01:00.0");
    lease.device = *parsePciAddress("0000:01:00.2");
    PhysicalFunction pf;
    pf.address = lease.pf;
    pf.netdevs = {{"eth0"}};
    inventory.pfs = {pf};
  }

  Lease lease;
  Inventory inventory;
};

TEST_F(PoolDriftTest, ReportsNetworkThatListsTheDevice) {
  EXPECT_THAT(poolDrift(lease, inventory, {{"pool", {lease.device}, {}}}),
              AllOf(HasSubstr("libvirt network pool"), HasSubstr("vfpass detach train0")));
}

TEST_F(PoolDriftTest, ReportsNetworkThatListsThePf) {
  EXPECT_THAT(poolDrift(lease, inventory, {{"pool", {}, {"eth0"}}}),
              HasSubstr("libvirt network pool"));
}

TEST_F(PoolDriftTest, IgnoresOtherNetworks) {
  EXPECT_EQ(poolDrift(lease, inventory, {{"pool", {lease.pf}, {"eth1"}}, {"nat", {}, {}}}), "");
}

}  // namespace
}  // namespace vfpass::commands
