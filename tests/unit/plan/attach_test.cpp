#include "vfpass/plan/plan_attach.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/plan/automatic.hpp"

namespace vfpass::plan {
namespace {

using testing::HasSubstr;

class AttachTest : public testing::Test {
 protected:
  AttachTest() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    kernel.addPf("0000:02:00.0", "ens2f0np0", 8, 0);
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = "train0";
    input.mapping.vm = "train0";
    input.mapping.file = "train0.yaml";
    input.mapping.vfs = {entry("rail0", "ens1f0np0")};
    input.placements = {placement(1), placement(2), placement(3)};
    input.generation = 7;
    input.bootId = "boot";
  }

  static MappedVf entry(const std::string& name, const std::string& netdev) {
    MappedVf vf;
    vf.name = name;
    vf.pf.netdev = netdev;
    vf.place = {"train0.yaml", 4, 5};
    return vf;
  }

  static GuestPlacement placement(std::uint8_t bus) {
    return {
        {0, bus, 0, 0}, RootPort{bus, {0, 0, static_cast<std::uint8_t>(bus + 1), 0}, false}, {}};
  }

  AttachDecision decide() {
    input.inventory = kernel.inventory();
    return planAttach(input);
  }

  // The only problem; fails the test if there is not exactly one.
  Objection objection() {
    const auto decision = decide();
    EXPECT_EQ(decision.objections.size(), 1U);
    EXPECT_TRUE(decision.plan.steps.empty());
    return decision.objections.empty() ? Objection{} : decision.objections[0];
  }

  Lease foreignLease(unsigned index) {
    Lease lease;
    lease.domain = *parseUuid("ffffffff-1111-4222-8333-944455566677");
    lease.domainName = "other";
    lease.entry = "rail0";
    lease.pf = *parsePciAddress("0000:01:00.0");
    vfOf(lease).index = index;
    return lease;
  }

  VirtualFunction& vf(unsigned index) {
    return kernel.pfs.at(*parsePciAddress("0000:01:00.0")).vfs[index];
  }

  fake::FakeKernel kernel;
  AttachInput input;
};

TEST_F(AttachTest, OrdersStepsLeaseConfigureBindXml) {
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  ASSERT_EQ(decision.plan.steps.size(), 4U);
  EXPECT_TRUE(std::holds_alternative<RecordLease>(decision.plan.steps[0].action));
  EXPECT_TRUE(std::holds_alternative<ConfigureVfs>(decision.plan.steps[1].action));
  EXPECT_TRUE(std::holds_alternative<BindDriver>(decision.plan.steps[2].action));
  EXPECT_TRUE(decision.plan.steps[2].disrupts);
  EXPECT_TRUE(std::holds_alternative<EditDomain>(decision.plan.steps[3].action));
}

TEST_F(AttachTest, EveryStepHasAnInverse) {
  input.mapping.vfs.push_back(entry("rail1", "ens2f0np0"));
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  for (const auto& step : decision.plan.steps) {
    EXPECT_FALSE(step.undo.empty()) << describe(step.action);
  }
}

TEST_F(AttachTest, CreatesMaximumVfCountOnPfWithoutVfs) {
  input.mapping.vfs = {entry("rail0", "ens2f0np0")};
  const auto decision = decide();
  const auto* create = std::get_if<CreateVfs>(&decision.plan.steps.at(1).action);
  ASSERT_NE(create, nullptr);
  EXPECT_EQ(create->count, 8U);
  EXPECT_FALSE(create->probe);
  EXPECT_EQ(toString(decision.leases[0].vf), "0000:02:00.1");
  EXPECT_TRUE(decision.leases[0].original.created);
}

TEST_F(AttachTest, MarksVfCreationThatDisruptsTheHost) {
  input.mapping.vfs = {entry("rail0", "ens2f0np0")};
  EXPECT_FALSE(decide().plan.steps.at(1).disrupts);
  for (auto& [address, pf] : kernel.pfs) {
    pf.uppers = {"bond0"};
  }
  const auto plan = decide().plan;
  EXPECT_TRUE(plan.steps.at(1).disrupts);
  EXPECT_THAT(plan.steps.at(1).reason, testing::HasSubstr("netdev ens2f0np0 is below bond0"));
}

TEST_F(AttachTest, TakesVfCountFromHostPolicy) {
  PfPolicy policy;
  policy.pf.pci = parsePciAddress("0000:02:00.0");
  policy.vfCount = 3;
  input.policy.pfs = {policy};
  input.mapping.vfs = {entry("rail0", "ens2f0np0")};
  EXPECT_EQ(std::get<CreateVfs>(decide().plan.steps.at(1).action).count, 3U);
  input.mapping.vfs[0].index = 3;
  EXPECT_EQ(objection().code, ExitCode::badInput);
}

TEST_F(AttachTest, AutoIndexSkipsLeasedClaimedNamedAndUsedVfs) {
  input.leases = {foreignLease(0)};
  vf(1).netdevs = {{"ens1f0v1", 9, true, false}};
  Mapping other;
  other.vm = "planned";
  other.vfs = {entry("rail0", "ens1f0np0")};
  other.vfs[0].index = 2;
  input.otherMappings = {other};
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(vfOf(decision.leases[0]).index, 3U);

  DomainSummary domain;
  domain.uuid = foreignLease(0).domain;
  domain.name = "hand-made";
  domain.claims = {{vf(3).address, "", {}, false}};
  input.domains = {domain};
  const auto none = objection();
  EXPECT_EQ(none.code, ExitCode::refused);
  EXPECT_THAT(none.message, HasSubstr("no free VF on PF 0000:01:00.0"));
}

TEST_F(AttachTest, RefusesVfsOfLibvirtNetworkPool) {
  input.pools = {{"pool", {vf(0).address, vf(1).address}, {}}};
  EXPECT_EQ(vfOf(decide().leases.at(0)).index, 2U);
  // An inactive network names only the PF.
  input.pools = {{"pool", {}, {"ens1f0np0"}}};
  const auto none = objection();
  EXPECT_EQ(none.code, ExitCode::refused);
  EXPECT_THAT(none.message, HasSubstr("belongs to the pool of libvirt network pool"));
}

TEST_F(AttachTest, AutoIndexAvoidsVfNamedByLaterEntry) {
  input.mapping.vfs.push_back(entry("rail1", "ens1f0np0"));
  input.mapping.vfs[1].index = 0;
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(vfOf(decision.leases[0]).index, 1U);
  EXPECT_EQ(vfOf(decision.leases[1]).index, 0U);
}

TEST_F(AttachTest, SuggestsPfForUnknownNetdev) {
  input.mapping.vfs[0].pf.netdev = "ens1f0np1";
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::badInput);
  EXPECT_THAT(problem.message, HasSubstr("train0.yaml:4:5: no PF netdev ens1f0np1"));
  EXPECT_THAT(problem.remedy, HasSubstr("ens1f0np0"));
}

TEST_F(AttachTest, SelectsPfBySerialAndFunction) {
  kernel.addPf("0000:01:00.1", "ens1f1np1", 8, 4);
  for (const char* address : {"0000:01:00.0", "0000:01:00.1"}) {
    kernel.pfs.at(*parsePciAddress(address)).serial = "MT2231X00001";
  }
  PfSelector& selector = input.mapping.vfs[0].pf;
  selector = {};
  selector.serial = "MT2231X00001";
  const auto several = objection();
  EXPECT_EQ(several.code, ExitCode::badInput);
  EXPECT_EQ(several.message,
            "train0.yaml:4:5: serial MT2231X00001 matches several PFs: 0000:01:00.0 (ens1f0np0), "
            "0000:01:00.1 (ens1f1np1)");
  EXPECT_EQ(several.remedy, "specify `function:` as well");
  selector.function = 1;
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(toString(decision.leases[0].pf), "0000:01:00.1");
  selector.function = 2;
  EXPECT_THAT(objection().message, HasSubstr("no PF serial MT2231X00001 function 2"));
}

TEST_F(AttachTest, SuggestsSerialNumber) {
  kernel.pfs.at(*parsePciAddress("0000:01:00.0")).serial = "MT2231X00001";
  input.mapping.vfs[0].pf = {};
  input.mapping.vfs[0].pf.serial = "MT2231X0001";
  EXPECT_EQ(objection().remedy, "did you mean `MT2231X00001`?");
}

TEST_F(AttachTest, RejectsVfIndexBeyondVfCount) {
  input.mapping.vfs[0].index = 4;
  EXPECT_THAT(objection().message, HasSubstr("has 4 VFs (at most 8)"));
}

TEST_F(AttachTest, RefusesVfLeasedToAnotherDomain) {
  input.mapping.vfs[0].index = 0;
  input.leases = {foreignLease(0)};
  const auto problem = objection();
  EXPECT_EQ(problem.code, ExitCode::refused);
  EXPECT_THAT(problem.message, HasSubstr("leased to domain other"));
}

// Names come from XML and sysfs, and users paste remedies into a root shell.
TEST_F(AttachTest, RemediesQuoteNamesAndEscapeControlCharacters) {
  input.mapping.vfs[0].index = 0;
  Lease held = foreignLease(0);
  held.domainName = "my vm; reboot\x1b[2J";
  input.leases = {held};
  const auto leased = objection();
  EXPECT_THAT(leased.remedy, HasSubstr("`vfpass detach 'my vm; reboot\\x1b[2J'`"));
  EXPECT_THAT(leased.message, HasSubstr("my vm; reboot\\x1b[2J"));
  input.leases.clear();
  vf(0).netdevs = {{"$(id)\x07", 9, true, false}};
  const auto used = objection();
  EXPECT_THAT(used.message, HasSubstr("netdev $(id)\\x07 is up"));
}

TEST_F(AttachTest, RefusesNetdevInUseUnlessAllowed) {
  input.mapping.vfs[0].index = 1;
  vf(1).netdevs = {{"ens1f0v1", 9, true, false}};
  EXPECT_EQ(objection().code, ExitCode::refused);
  input.mapping.allow = {Allowance::netdevInUse};
  EXPECT_TRUE(decide().objections.empty());
}

TEST_F(AttachTest, RefusesSharedIommuGroupUnlessAllowed) {
  input.mapping.vfs[0].index = 1;
  vf(1).groupPeers = {*parsePciAddress("0000:01:00.0")};
  EXPECT_THAT(objection().message, HasSubstr("shares IOMMU group 101 with 0000:01:00.0"));
  input.mapping.allow = {Allowance::sharedIommuGroup};
  EXPECT_TRUE(decide().objections.empty());
}

TEST_F(AttachTest, RefusesVfWithoutIommuGroup) {
  input.mapping.vfs[0].index = 1;
  vf(1).iommuGroup.reset();
  EXPECT_EQ(objection().code, ExitCode::refused);
}

TEST_F(AttachTest, RefusesUnsafeInterrupts) {
  input.mapping.vfs[0].index = 1;
  kernel.pfs.begin()->second.numaNode = 0;
  input.inventory = kernel.inventory();
  input.inventory.unsafeInterrupts = true;
  EXPECT_EQ(planAttach(input).objections.size(), 1U);
}

TEST_F(AttachTest, AutomaticMacIsStableAndLocal) {
  const auto mac = vfOf(decide().leases[0]).settings.mac;
  ASSERT_TRUE(mac.has_value());
  EXPECT_EQ(mac->bytes[0] & 0x03U, 0x02U);
  EXPECT_EQ(vfOf(decide().leases[0]).settings.mac, mac);
  // A literal value, because a new version must not change the addresses of guests.
  EXPECT_EQ(toString(*mac), "42:f6:03:81:8b:09");
  input.mapping.vfs[0].name = "rail1";
  EXPECT_NE(vfOf(decide().leases[0]).settings.mac, mac);
}

TEST_F(AttachTest, AutomaticGuidIsStableAndLocal) {
  const auto guid =
      automaticGuid(input.domain, "rail0", GuidRole::node, [](const Guid&) { return false; });
  EXPECT_EQ(toString(guid), "42:1a:c3:59:c1:4c:d6:94");
}

TEST_F(AttachTest, AutomaticMacAvoidsTakenAddress) {
  const auto mac = vfOf(decide().leases[0]).settings.mac;
  Mapping other;
  other.vm = "other";
  other.vfs = {entry("x", "ens1f0np0")};
  other.vfs[0].macAutomatic = false;
  other.vfs[0].settings.mac = mac;
  input.otherMappings = {other};
  EXPECT_NE(vfOf(decide().leases[0]).settings.mac, mac);
}

TEST_F(AttachTest, RejectsMacUsedByAnotherDomain) {
  const auto mac = parseMacAddress("02:00:00:00:00:01");
  input.mapping.vfs[0].macAutomatic = false;
  input.mapping.vfs[0].settings.mac = mac;
  auto lease = foreignLease(3);
  vfOf(lease).settings.mac = mac;
  input.leases = {lease};
  EXPECT_THAT(objection().message, HasSubstr("is already used by rail0 of domain other"));
  input.leases.clear();
  DomainSummary domain;
  domain.uuid = foreignLease(0).domain;
  domain.name = "bridged";
  domain.macAddresses = {*mac};
  input.domains = {domain};
  EXPECT_THAT(objection().message, HasSubstr("is already used by domain bridged"));
}

class TeamedVfTest : public AttachTest {
 protected:
  TeamedVfTest() {
    input.mapping.vfs[0].teamingWith = "net0";
    input.interfaces = {{"ua-other", parseMacAddress("52:54:00:00:00:01"), "virtio", "persistent"},
                        {"ua-net0", standbyMac, "virtio", "persistent"}};
  }

  std::optional<MacAddress> standbyMac = parseMacAddress("52:54:00:00:00:02");
};

TEST_F(TeamedVfTest, GetsMacOfItsStandby) {
  EXPECT_EQ(vfOf(decide().leases.at(0)).settings.mac, standbyMac);
  input.leases = decide().leases;
  vfOf(input.leases[0]).settings.mac = parseMacAddress("02:00:00:00:00:09");
  EXPECT_EQ(vfOf(decide().leases.at(0)).settings.mac, standbyMac) << "the standby's has changed";
  input.mapping.vfs[0].teamingWith = "ua-net0";
  EXPECT_EQ(vfOf(decide().leases.at(0)).settings.mac, standbyMac);
}

TEST_F(TeamedVfTest, AcceptsOnlyMacOfItsStandby) {
  input.mapping.vfs[0].macAutomatic = false;
  input.mapping.vfs[0].settings.mac = standbyMac;
  EXPECT_TRUE(decide().objections.empty());
  input.mapping.vfs[0].settings.mac = parseMacAddress("02:00:00:00:00:01");
  EXPECT_THAT(objection().message,
              HasSubstr("MAC 02:00:00:00:00:01 of rail0 differs from MAC 52:54:00:00:00:02 of "
                        "ua-net0"));
  EXPECT_EQ(objection().code, ExitCode::badInput);
}

TEST_F(TeamedVfTest, RefusesInterfaceThatCannotStandBy) {
  input.interfaces[1].model = "e1000e";
  EXPECT_THAT(objection().message, HasSubstr("its model is e1000e instead of virtio"));
  input.interfaces[1].model = "virtio";
  input.interfaces[1].teaming.clear();
  EXPECT_THAT(objection().message, HasSubstr("it has no <teaming type='persistent'/>"));
  input.interfaces.pop_back();
  EXPECT_THAT(objection().message, HasSubstr("the domain has no interface with that alias"));
}

TEST_F(TeamedVfTest, RefusesMacThatAnotherVfHas) {
  auto lease = foreignLease(3);
  vfOf(lease).settings.mac = standbyMac;
  input.leases = {lease};
  EXPECT_THAT(objection().message, HasSubstr("is already used by rail0 of domain other"));
}

TEST_F(TeamedVfTest, RefusesInfinibandVf) {
  kernel.pfs.at(*parsePciAddress("0000:01:00.0")).linkLayer = LinkLayer::infiniband;
  EXPECT_THAT(objection().message, HasSubstr("is teamed, but PF 0000:01:00.0 is InfiniBand"));
}

TEST_F(AttachTest, InfinibandVfGetsGuidsInsteadOfMac) {
  kernel.pfs.at(*parsePciAddress("0000:01:00.0")).linkLayer = LinkLayer::infiniband;
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  const auto& settings = vfOf(decision.leases[0]).settings;
  EXPECT_FALSE(settings.mac);
  ASSERT_TRUE(settings.nodeGuid && settings.portGuid);
  EXPECT_TRUE(settings.nodeGuid->isUsable());
  EXPECT_NE(settings.nodeGuid, settings.portGuid);
  input.mapping.vfs[0].settings.vlan = Vlan{5, 0, VlanProtocol::dot1q};
  EXPECT_THAT(objection().message, HasSubstr("InfiniBand, which has neither"));
}

TEST_F(AttachTest, RejectsGuidsOnEthernetPf) {
  auto& pf = kernel.pfs.at(*parsePciAddress("0000:01:00.0"));
  input.mapping.vfs[0].guidsAutomatic = true;
  pf.vendor = 0x15b3;
  EXPECT_EQ(objection().code, ExitCode::badInput);
  EXPECT_EQ(objection().remedy,
            "remove `infiniband:`, or change the type of the port: mstconfig -d 0000:01:00.0 set "
            "LINK_TYPE_P1=1, then power-cycle the machine");
  pf.vendor = 0x14e4;
  EXPECT_EQ(objection().remedy, "remove `infiniband:`, or choose a PF whose port is InfiniBand");
}

// The second port of a card is function 1 of the same firmware.
TEST(LinkType, IsThatOfTheFunctionsPort) {
  EXPECT_EQ(linkTypeSetting(*parsePciAddress("0000:01:00.0")), "LINK_TYPE_P1");
  EXPECT_EQ(linkTypeSetting(*parsePciAddress("0000:01:00.1")), "LINK_TYPE_P2");
}

// Without IPoIB netdev and RDMA device the link type is unknown, which is no reason to change it.
TEST_F(AttachTest, RequiresIpoibNetdevForGuids) {
  auto& pf = kernel.pfs.at(*parsePciAddress("0000:01:00.0"));
  input.mapping.vfs[0].pf = {};
  input.mapping.vfs[0].pf.pci = pf.address;
  pf.netdev.clear();
  for (const LinkLayer layer : {LinkLayer::unknown, LinkLayer::infiniband}) {
    pf.linkLayer = layer;
    input.mapping.vfs[0].guidsAutomatic = layer == LinkLayer::unknown;
    EXPECT_THAT(objection().message, HasSubstr("PF 0000:01:00.0 has no IPoIB netdev"));
    EXPECT_THAT(objection().remedy,
                testing::StartsWith("run `modprobe ib_ipoib`, and install rdma-core"));
    EXPECT_EQ(objection().code, ExitCode::failed);
  }
}

TEST_F(AttachTest, ReportsAllProblemsAtOnce) {
  input.mapping.vfs[0].pf.netdev = "nope";
  input.mapping.vfs.push_back(entry("rail1", "ens1f0np0"));
  input.mapping.vfs[1].index = 99;
  EXPECT_EQ(decide().objections.size(), 2U);
}

TEST_F(AttachTest, KeepsVfMacAndGuestAddressWhenVlanChanges) {
  const auto first = decide().leases;
  input.leases = first;
  input.xmlCurrent = true;
  EXPECT_TRUE(decide().plan.steps.empty());
  input.mapping.vfs[0].settings.vlan = Vlan{9, 0, VlanProtocol::dot1q};
  const auto second = decide();
  ASSERT_FALSE(second.plan.steps.empty());
  EXPECT_EQ(second.leases[0].vf, first[0].vf);
  EXPECT_EQ(vfOf(second.leases[0]).settings.mac, vfOf(first[0]).settings.mac);
  EXPECT_EQ(second.leases[0].guest, first[0].guest);
  EXPECT_EQ(second.leases[0].original, first[0].original);
}

TEST_F(AttachTest, ClearsAttributeRemovedFromMapping) {
  input.mapping.vfs[0].settings.rate = Rate{0, 100};
  input.leases = decide().leases;
  input.xmlCurrent = true;
  for (auto& pf : input.inventory.pfs) {
    if (pf.address == input.leases[0].pf) {
      pf.vfs[vfOf(input.leases[0]).index].settings = vfOf(input.leases[0]).settings;
    }
  }
  input.mapping.vfs[0].settings.rate.reset();
  const auto second = planAttach(input);
  const auto step = std::find_if(
      second.plan.steps.begin(), second.plan.steps.end(),
      [](const Step& each) { return std::holds_alternative<ConfigureVfs>(each.action); });
  ASSERT_NE(step, second.plan.steps.end());
  EXPECT_EQ(std::get<ConfigureVfs>(step->action).vfs[0].settings.rate, Rate{});
  EXPECT_EQ(std::get<ConfigureVfs>(step->undo[0]).vfs[0].settings.rate, (Rate{0, 100}));
  EXPECT_FALSE(vfOf(second.leases[0]).settings.rate);
}

TEST_F(AttachTest, RefusesToChangeLeaseOfRunningGuest) {
  input.leases = decide().leases;
  input.leases[0].state = LeaseState::running;
  input.active = true;
  input.plugged = {"rail0"};
  input.mapping.vfs[0].settings.vlan = Vlan{9, 0, VlanProtocol::dot1q};
  EXPECT_EQ(objection().code, ExitCode::refused);
}

TEST_F(AttachTest, WritesOnlyXmlWhenOnlyXmlIsMissing) {
  input.leases = decide().leases;
  input.xmlCurrent = false;
  const auto decision = decide();
  ASSERT_EQ(decision.plan.steps.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<EditDomain>(decision.plan.steps[0].action));
}

}  // namespace
}  // namespace vfpass::plan
