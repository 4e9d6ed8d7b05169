#include "vfpass/plan/plan_attach.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "attach_decisions.hpp"
#include "fake/fake_kernel.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/plan/lease_device.hpp"

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

TEST_F(AttachTest, RefusesVfOfNvlinkManagement) {
  hosts::TopologyBuilder builder;
  static_cast<void>(builder.function(FunctionRole::nvlinkManagement, "0000:01:00.0",
                                     builder.hostBridge("pci0000:00", 0)));
  input.topology = builder.topology;
  const auto found = objection();
  EXPECT_THAT(found.message, HasSubstr("manages the NVLink of the GPU board"));
  EXPECT_EQ(found.code, ExitCode::badInput);
}

// VFs exist only after the attach, so that their groups cannot be missing yet.
TEST_F(AttachTest, SaysThatTheIommuIsOffBeforeVfsExist) {
  input.mapping.vfs = {entry("rail0", "ens2f0np0")};
  input.inventory = kernel.inventory();
  input.inventory.iommuPresent = false;
  const auto decision = planAttach(input);
  ASSERT_EQ(decision.objections.size(), 1U);
  EXPECT_THAT(decision.objections[0].message, HasSubstr("the IOMMU is off"));
}

TEST_F(AttachTest, NamesTheIommuOfTheHostsProcessors) {
  input.mapping.vfs = {entry("rail0", "ens2f0np0")};
  input.inventory = kernel.inventory();
  input.inventory.iommuPresent = false;
  const auto remedy = [&](const std::string& architecture) {
    input.topology.processors.architecture = architecture;
    return planAttach(input).objections.at(0).remedy;
  };
  EXPECT_THAT(remedy("x86_64"), HasSubstr("intel_iommu=on"));
  EXPECT_THAT(remedy("arm64"), testing::StartsWith("enable the SMMU in the system's firmware; "));
}

// The kernel's list of VFs ends at 64 KiB.
TEST_F(AttachTest, SaysWhatItCannotRestoreLater) {
  EXPECT_TRUE(unreadOriginals(input, decide().leases).empty());
  PhysicalFunction& pf = input.inventory.pfs.front();
  pf.vfs[0].settings = {};
  pf.vfs[0].settingsReadable = false;
  input.mapping.vfs.resize(1);
  input.mapping.vfs[0].index = 0;
  const auto decision = planAttach(input);
  EXPECT_THAT(unreadOriginals(input, decision.leases),
              testing::ElementsAre(
                  HasSubstr("rail0: VF 0 of PF 0000:01:00.0: its attributes cannot be read; ")));
}

// The state database was deleted during an attach: what the VF had before is lost.
TEST_F(AttachTest, DoesNotTakeItsOwnLeftoverForTheOriginalState) {
  input.mapping.vfs[0].index = 0;
  const Lease first = decide().leases.at(0);
  auto& vf = kernel.pfs.at(first.pf).vfs.at(0);
  vf.driver = "vfio-pci";
  vf.driverOverride = "vfio-pci";
  vf.settings.mac = vfOf(first).settings.mac;
  const Lease again = decide().leases.at(0);
  EXPECT_EQ(again.original.driver, "mlx5_core");
  EXPECT_EQ(again.original.driverOverride, "");
  EXPECT_EQ(again.original.settings, VfSettings{});
  EXPECT_THAT(unreadOriginals(input, {again}),
              testing::ElementsAre(HasSubstr("whose record was lost with the state database")));
  vf.settings.mac = parseMacAddress("02:00:00:00:00:01");
  EXPECT_EQ(decide().leases.at(0).original.driver, "vfio-pci") << "an administrator has bound it";
}

class SwitchdevTest : public AttachTest {
 protected:
  SwitchdevTest() {
    kernel.pfSettings.at(*parsePciAddress("0000:01:00.0")).eswitchMode = EswitchMode::switchdev;
    mapped().required = {Attribute::mac};
    mapped().settings.spoofCheck = true;
    mapped().settings.linkState = LinkState::automatic;
    mapped().settings.trust = false;
    mapped().settings.rate = Rate{0, 100};
  }
  MappedVf& mapped() { return input.mapping.vfs[0]; }
};

TEST_F(SwitchdevTest, LeavesOutDefaultsThatTheModeLacks) {
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  const auto& change = std::get<ConfigureVfs>(decision.plan.steps.at(1).action).vfs.at(0);
  EXPECT_EQ(differingAttributes(change.settings, {}),
            (std::vector{Attribute::mac, Attribute::rate}));
  EXPECT_EQ(vfOf(decision.leases[0]).refused,
            std::set<Attribute>(legacyOnlyAttributes.begin(), legacyOnlyAttributes.end()));
  EXPECT_EQ(decision.plan.notes.back(),
            "rail0: the driver of PF 0000:01:00.0 cannot set spoof-check, link-state, trust in "
            "switchdev mode; this is left out");
}

TEST_F(SwitchdevTest, AcceptsVlanZeroWhichNeedsNothing) {
  mapped().settings.vlan = Vlan{};
  mapped().required.insert(Attribute::vlan);
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(vfOf(decision.leases[0]).settings.vlan, std::nullopt);
}

TEST_F(SwitchdevTest, RefusesVlanEvenIfOptional) {
  mapped().settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
  EXPECT_EQ(objection().message,
            "train0.yaml:4:5: rail0 requires vlan, but the driver of PF 0000:01:00.0 cannot set "
            "that in switchdev mode");
  EXPECT_THAT(
      objection().remedy,
      testing::AllOf(HasSubstr("embedded-switch-mode: legacy"),
                     HasSubstr("`devlink dev eswitch set pci/0000:01:00.0 mode legacy`"),
                     HasSubstr("`bridge vlan add dev REPRESENTOR vid 100 pvid untagged` with the "
                               "netdev that has phys_port_name pf0vf0")));
  vf(0).representor = "ens1f0npf0vf0";
  EXPECT_THAT(objection().remedy,
              HasSubstr("`bridge vlan add dev ens1f0npf0vf0 vid 100 pvid untagged`"));
}

TEST_F(SwitchdevTest, RefusesRequiredAttributesOfLegacyMode) {
  for (const Attribute attribute :
       {Attribute::spoofCheck, Attribute::linkState, Attribute::trust}) {
    mapped().required = {Attribute::mac, attribute};
    EXPECT_THAT(objection().message,
                HasSubstr("rail0 requires " + std::string(toString(attribute)) + ", but"));
    EXPECT_THAT(objection().remedy,
                HasSubstr("remove " + std::string(toString(attribute)) + " from the mapping"));
  }
}

TEST_F(SwitchdevTest, IsNoRuleForOtherDriversOrModes) {
  mapped().settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
  auto& pf = kernel.pfs.at(*parsePciAddress("0000:01:00.0"));
  pf.driver = "ice";
  EXPECT_TRUE(decide().objections.empty());
  pf.driver = "mlx5_core";
  kernel.pfSettings.at(pf.address).eswitchMode.reset();
  EXPECT_TRUE(decide().objections.empty());
}

TEST_F(SwitchdevTest, LegacyModeSetsWhatSwitchdevLacked) {
  input.leases = {decide().leases[0]};
  input.xmlCurrent = true;
  EXPECT_TRUE(decide().plan.steps.empty());
  kernel.pfSettings.at(input.leases[0].pf).eswitchMode = EswitchMode::legacy;
  const auto decision = decide();
  EXPECT_TRUE(vfOf(decision.leases[0]).refused.empty());
  EXPECT_EQ(vfOf(decision.leases[0]).settings.spoofCheck, true);
  EXPECT_FALSE(decision.plan.steps.empty());
}

TEST_F(AttachTest, EveryStepHasAnInverse) {
  input.mapping.vfs.push_back(entry("rail1", "ens2f0np0"));
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  for (const auto& step : decision.plan.steps) {
    EXPECT_FALSE(step.undo.empty()) << describe(step.action);
  }
}

// Every further VF costs creation time, pages of the card's memory, and interrupt vectors.
class CreatedCount : public AttachTest {
 protected:
  CreatedCount() { input.mapping.vfs = {entry("rail0", "ens2f0np0")}; }

  unsigned created() {
    const auto decision = decide();
    for (const auto& step : decision.plan.steps) {
      if (const auto* create = std::get_if<CreateVfs>(&step.action)) {
        for (const auto& lease : decision.leases) {
          EXPECT_EQ(vfOf(lease).count, create->count);
        }
        return create->count;
      }
    }
    return 0;
  }

  static Mapping mappingOf(const std::string& vm, std::size_t vfs) {
    Mapping mapping;
    mapping.vm = vm;
    mapping.file = vm + ".yaml";
    for (std::size_t i = 0; i < vfs; ++i) {
      mapping.vfs.push_back(entry("rail" + std::to_string(i), "ens2f0np0"));
    }
    return mapping;
  }

  Lease leaseOf(const std::string& vm, const std::string& entryName, unsigned index) {
    Lease lease = foreignLease(index);
    lease.domainName = vm;
    lease.entry = entryName;
    lease.pf = *parsePciAddress("0000:02:00.0");
    return lease;
  }
};

TEST_F(CreatedCount, IsWhatTheMappingsOfThePfNeed) {
  EXPECT_EQ(created(), 1U);
  input.otherMappings = {mappingOf("train1", 2), mappingOf("train2", 1)};
  EXPECT_EQ(created(), 4U);
  input.otherMappings[1].vfs[0].pf.netdev = "ens1f0np0";  // of another PF
  EXPECT_EQ(created(), 3U);
  input.otherMappings = {mappingOf("train1", 20)};  // more than the card has
  EXPECT_EQ(created(), 8U);
}

TEST_F(CreatedCount, IncludesLeasesOnce) {
  input.otherMappings = {mappingOf("train1", 2)};
  input.leases = {leaseOf("train1", "rail0", 0)};
  EXPECT_EQ(created(), 3U);
  input.leases.push_back(leaseOf("unmapped", "rail0", 4));
  EXPECT_EQ(created(), 5U);  // VFs 1 to 3 are free for both entries without a lease
}

TEST_F(CreatedCount, ReachesTheNamedIndex) {
  input.otherMappings = {mappingOf("train1", 1)};
  input.otherMappings[0].vfs[0].index = 5;
  EXPECT_EQ(created(), 6U);
  input.mapping.vfs[0].index = 6;
  EXPECT_EQ(created(), 7U);
}

TEST_F(CreatedCount, SkipsVfsThatOthersClaim) {
  DomainSummary domain;
  domain.name = "hand-made";
  domain.claims = {{*parsePciAddress("0000:02:00.1"), "", {}}};
  input.domains = {domain};
  EXPECT_EQ(created(), 2U);
  EXPECT_EQ(vfOf(decide().leases.at(0)).index, 1U);
}

TEST_F(AttachTest, NamesUsersAndCountIfNoVfIsFree) {
  input.leases = {foreignLease(0), foreignLease(1), foreignLease(2), foreignLease(3)};
  const auto none = objection();
  EXPECT_THAT(none.message, HasSubstr("(4 of 8 possible VFs); used by other"));
  EXPECT_THAT(none.remedy, HasSubstr("set virtual-function-count for this PF in host.yaml (5 to "
                                     "8), shut down and `vfpass detach` the VMs"));
  PfPolicy policy;
  policy.pf.pci = parsePciAddress("0000:01:00.0");
  policy.vfCount = 8;
  input.policy.pfs = {policy};
  EXPECT_THAT(objection().remedy, HasSubstr("another VM, or shut down and `vfpass detach`"));
  kernel.pfs.at(*parsePciAddress("0000:01:00.0")).totalVfs = 4;
  EXPECT_THAT(objection().remedy, HasSubstr("raise the limit in the NIC's firmware"));
}

TEST_F(AttachTest, CreatesVfsOnPfWithoutVfs) {
  input.mapping.vfs = {entry("rail0", "ens2f0np0")};
  const auto decision = decide();
  const auto* create = std::get_if<CreateVfs>(&decision.plan.steps.at(1).action);
  ASSERT_NE(create, nullptr);
  EXPECT_FALSE(create->probe);
  EXPECT_EQ(toString(decision.leases[0].device), "0000:02:00.1");
  EXPECT_TRUE(decision.leases[0].original.created);
}

TEST_F(AttachTest, RequiresConsentForVfCreationThatEndsRoceLag) {
  input.mapping.vfs = {entry("rail0", "ens2f0np0")};
  PhysicalFunction& pf = kernel.pfs.at(*parsePciAddress("0000:02:00.0"));
  pf.uppers = {"bond0"};
  pf.addresses = {"192.0.2.1/24"};
  EXPECT_TRUE(decide().objections.empty()) << "the netdev of the PF stays as it is";
  pf.lag = {"bond0", "", {}};
  EXPECT_EQ(objection().message,
            "creating the VFs of PF 0000:02:00.0 would disrupt the host: the RoCE LAG of bond0 is "
            "disabled");
  EXPECT_THAT(objection().remedy, HasSubstr("`vfpass host apply`, or accept it with `allow: "
                                            "[disruption]`"));
  EXPECT_EQ(objection().code, ExitCode::refused);
  kernel.pfSettings[pf.address].eswitchMode = EswitchMode::switchdev;
  EXPECT_TRUE(decide().objections.empty()) << "mlx5 keeps the LAG in switchdev mode";
  kernel.pfSettings[pf.address].eswitchMode.reset();
  input.mapping.allow = {Allowance::disruption};
  const auto decision = decide();
  EXPECT_TRUE(decision.plan.steps.at(1).disrupts);
  EXPECT_THAT(decision.plan.steps.at(1).reason, HasSubstr("the RoCE LAG of bond0 is disabled"));
  EXPECT_TRUE(decision.leases.at(0).allow.contains(Allowance::disruption)) << "for later starts";
}

// With consent, too: RDMA users are never disrupted.
TEST_F(AttachTest, ChecksRdmaUsersOfLagThatVfCreationDisables) {
  input.mapping.vfs = {entry("rail0", "ens2f0np0")};
  kernel.pfs.at(*parsePciAddress("0000:02:00.0")).lag = {"bond0", "rocep2s0",
                                                         parsePciAddress("0000:02:00.1")};
  EXPECT_THAT(objection().message, HasSubstr("the RoCE LAG of bond0 is disabled and its RDMA "
                                             "device rocep2s0 removed"));
  input.mapping.allow = {Allowance::disruption};
  EXPECT_EQ(std::get<CreateVfs>(decide().plan.steps.at(1).action).lagDevicePf,
            parsePciAddress("0000:02:00.1"));
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
  domain.claims = {{vf(3).address, "", {}}};
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

// Its driver_override is not known, so detach could not restore it.
TEST_F(AttachTest, RefusesVfWhoseLockTheKernelHolds) {
  input.mapping.vfs[0].index = 1;
  vf(1).locked = true;
  EXPECT_THAT(objection().message, HasSubstr("is locked in the kernel"));
  EXPECT_EQ(objection().code, ExitCode::failed);
}

TEST_F(AttachTest, RefusesSharedIommuGroupUnlessAllowed) {
  input.mapping.vfs[0].index = 1;
  vf(1).groupPeers = {{*parsePciAddress("0000:01:00.0"), 0x020000, "mlx5_core"}};
  EXPECT_THAT(objection().message, HasSubstr("shares IOMMU group 101 with 0000:01:00.0"));
  input.mapping.allow = {Allowance::sharedIommuGroup};
  EXPECT_TRUE(decide().objections.empty());
}

TEST_F(AttachTest, AcceptsNamedVfsOfOneMappingInOneGroup) {
  MappedVf second = input.mapping.vfs[0];
  second.name = "second";
  second.index = 2;
  input.mapping.vfs[0].index = 1;
  vf(1).groupPeers = {{vf(2).address, 0x020000, "mlx5_core"}};
  vf(2).groupPeers = {{vf(1).address, 0x020000, "mlx5_core"}};
  EXPECT_THAT(objection().message, HasSubstr("shares IOMMU group"));
  input.mapping.vfs.push_back(second);
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
      derivedGuid(input.domain, "rail0", GuidRole::node, [](const Guid&) { return false; });
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

// Made by hand, or left by another program: no lease, mapping or domain tells.
TEST_F(AttachTest, RejectsMacThatAnotherVfOfTheHostHas) {
  const auto mac = parseMacAddress("02:00:00:00:00:01");
  input.mapping.vfs[0].macAutomatic = false;
  input.mapping.vfs[0].settings.mac = mac;
  input.mapping.vfs[0].index = 1;
  vf(2).settings.mac = mac;
  EXPECT_THAT(objection().message,
              HasSubstr("MAC 02:00:00:00:00:01 of rail0 is already used by VF 2 of PF "));
  vf(2).settings.mac.reset();
  kernel.addPf("0000:03:00.0", "ens3f0np0", 8, 2);
  auto& elsewhere = kernel.pfs.at(*parsePciAddress("0000:03:00.0")).vfs[1].settings.mac;
  elsewhere = mac;
  EXPECT_THAT(objection().message, HasSubstr("already used by VF 1 of PF 0000:03:00.0"));
  elsewhere.reset();
  vf(1).settings.mac = mac;
  EXPECT_TRUE(decide().objections.empty()) << "the VF itself may have it already";
  input.leases = decide().leases;
  input.mapping.vfs[0].index = 0;
  EXPECT_TRUE(decide().objections.empty()) << "the entry moves to another VF with its MAC";
}

TEST_F(AttachTest, RejectsMacOfAnInterfaceOfTheDomain) {
  const auto mac = parseMacAddress("02:00:00:00:00:01");
  input.mapping.vfs[0].macAutomatic = false;
  input.mapping.vfs[0].settings.mac = mac;
  input.interfaces = {{"ua-vfpass-rail0", mac, "", ""}};
  EXPECT_TRUE(decide().objections.empty()) << "its own element";
  input.interfaces = {{"net0", mac, "virtio", ""}};
  EXPECT_THAT(objection().message, HasSubstr("is already used by another interface of the domain"));
}

TEST_F(AttachTest, AutomaticMacAvoidsVfsOfTheHost) {
  const auto mac = vfOf(decide().leases[0]).settings.mac;
  vf(3).settings.mac = mac;
  EXPECT_NE(vfOf(decide().leases[0]).settings.mac, mac);
  vf(3).driver = "vfio-pci";
  EXPECT_EQ(vfOf(decide().leases[0]).settings.mac, mac) << "left by an attach whose record is lost";
}

TEST_F(AttachTest, RejectsGuidThatAnotherVfOfTheHostHas) {
  kernel.pfs.at(*parsePciAddress("0000:01:00.0")).linkLayer = LinkLayer::infiniband;
  input.mapping.vfs[0].settings.portGuid = Guid{0x0200000000000001};
  input.mapping.vfs[0].index = 1;
  vf(2).settings.portGuid = Guid{0x0200000000000001};
  EXPECT_THAT(objection().message, HasSubstr("of rail0 is already used by VF 2 of PF "));
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

// A PF without VFs, whose driver shows no netdev.
class AttachWithoutNetdev : public AttachTest {
 protected:
  AttachWithoutNetdev() {
    pf.netdevs.clear();
    pf.linkLayer = LinkLayer::unknown;
    pf.classCode = 0x020000;
    input.mapping.vfs[0].pf = {};
    input.mapping.vfs[0].pf.pci = pf.address;
  }

  PhysicalFunction& pf = kernel.pfs.at(*parsePciAddress("0000:02:00.0"));
};

TEST_F(AttachWithoutNetdev, RequiresIpoibNetdevOnInfiniband) {
  pf.rdma = {{"mlx5_0"}};
  pf.linkLayer = LinkLayer::infiniband;
  EXPECT_THAT(objection().message, HasSubstr("PF 0000:02:00.0: it has no IPoIB netdev"));
  EXPECT_THAT(objection().remedy,
              testing::StartsWith("run `modprobe ib_ipoib`, and install rdma-core"));
  EXPECT_EQ(objection().code, ExitCode::failed);
}

TEST_F(AttachWithoutNetdev, AcceptsInfinibandPfWithFilesForVfs) {
  pf.rdma = {{"mlx5_0"}};
  pf.linkLayer = LinkLayer::infiniband;
  pf.hasVfFiles = true;
  EXPECT_TRUE(decide().objections.empty());
}

// Without IPoIB netdev and RDMA device the link type is unknown, which is no reason to change it.
TEST_F(AttachWithoutNetdev, RecognizesInfinibandByClassWithoutRdmaDevice) {
  pf.classCode = 0x020700;
  input.mapping.vfs[0].guidsAutomatic = true;
  EXPECT_THAT(objection().remedy,
              testing::StartsWith("run `modprobe mlx5_ib` and `modprobe ib_ipoib`"));
}

TEST_F(AttachWithoutNetdev, RefusesPfAfterFirmwareError) {
  EXPECT_THAT(objection().message, HasSubstr("neither netdev nor RDMA device"));
  EXPECT_THAT(objection().remedy, HasSubstr("journalctl -k --grep 'mlx5_core 0000:02:00.0'"));
  input.mapping.vfs[0].guidsAutomatic = true;
  EXPECT_THAT(objection().remedy, HasSubstr("devlink health show pci/0000:02:00.0"));
}

// mlx5 has cleared the data of such a netdev, and requests for VFs crash the kernel.
TEST_F(AttachWithoutNetdev, RefusesPfWithDetachedNetdev) {
  pf.netdevs = {{"ens1f0np0"}};
  pf.netdevDetached = true;
  EXPECT_THAT(objection().message, HasSubstr("has a netdev that its driver has detached"));
  EXPECT_THAT(objection().remedy, HasSubstr("reboot the host"));
}

TEST_F(AttachWithoutNetdev, NamesPfThatHasTheNetdevOfSocketDirectCard) {
  pf.rdma = {{"mlx5_1"}};
  pf.linkLayer = LinkLayer::ethernet;
  pf.mainPf = parsePciAddress("0000:01:00.0");
  EXPECT_THAT(objection().message, HasSubstr("because PF 0000:01:00.0 of the same Socket Direct"));
  EXPECT_THAT(objection().remedy, testing::StartsWith("choose PF 0000:01:00.0;"));
}

TEST_F(AttachWithoutNetdev, RefusesPfWithoutHostDriver) {
  pf.driver = "vfio-pci";
  EXPECT_THAT(objection().message, HasSubstr("is bound to vfio-pci"));
  pf.driver.clear();
  EXPECT_THAT(objection().message, HasSubstr("is bound to no driver"));
}

// A PF that does not manage its embedded switch: the driver's list of its VFs is empty.
class AttachToUnmanagedPf : public AttachTest {
 protected:
  AttachToUnmanagedPf() {
    pf.reportsNoVfs = true;
    pf.vendor = 0x15b3;
    pf.device = 0xa2dc;
    for (VirtualFunction& vf : pf.vfs) {
      vf.settingsReadable = false;
      vf.settings = {};
    }
    keepMac();
  }
  void keepMac() {
    MappedVf& rail = input.mapping.vfs[0];
    rail.macAutomatic = false;
    rail.macKept = true;
    rail.settings.spoofCheck = true;
    rail.settings.trust = false;
    rail.settings.linkState = LinkState::automatic;
  }

  PhysicalFunction& pf = kernel.pfs.at(*parsePciAddress("0000:01:00.0"));
};

TEST_F(AttachToUnmanagedPf, SetsNothingIfVfKeepsItsMac) {
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(acceptedSettings(decision.leases.at(0)), VfSettings{});
  EXPECT_TRUE(vfOf(decision.leases.at(0)).required.empty());
  for (const Step& step : decision.plan.steps) {
    EXPECT_FALSE(std::holds_alternative<ConfigureVfs>(step.action)) << describe(step.action);
  }
}

// The driver reports nothing about VFs that do not exist: only their creation shows that the host
// cannot manage them.
TEST_F(AttachToUnmanagedPf, HasTheSameTermsBeforeItsVfsExist) {
  const std::vector<VirtualFunction> vfs = std::exchange(pf.vfs, {});
  pf.reportsNoVfs = false;
  input.leases = decide().leases;
  ASSERT_EQ(input.leases.size(), 1U);
  pf.vfs = vfs;
  pf.reportsNoVfs = true;
  EXPECT_THAT(mappingDifferences(input, decide().leases), testing::IsEmpty());
}

TEST_F(AttachToUnmanagedPf, RefusesToSetMac) {
  input.mapping.vfs[0].macKept = false;
  input.mapping.vfs[0].macAutomatic = true;
  EXPECT_THAT(objection().message, HasSubstr("rail0 sets mac, but the driver of PF 0000:01:00.0"));
  EXPECT_THAT(objection().remedy, testing::AllOf(HasSubstr("BlueField"), HasSubstr("mac: keep")));
  pf.device = 0x101d;
  EXPECT_THAT(objection().remedy, testing::AllOf(testing::Not(HasSubstr("BlueField")),
                                                 HasSubstr("VGT+"), HasSubstr("mac: keep")));
}

TEST_F(AttachToUnmanagedPf, RefusesEverythingButDefaults) {
  MappedVf& rail = input.mapping.vfs[0];
  rail.settings.vlan = Vlan{7, 0, VlanProtocol::dot1q};
  rail.settings.trust = true;
  rail.required = {Attribute::vlan, Attribute::linkState};
  EXPECT_THAT(objection().message, HasSubstr("rail0 sets vlan, link-state, trust, but"));
}

TEST_F(AttachToUnmanagedPf, ManagedPfSetsEverythingButMac) {
  pf.reportsNoVfs = false;
  pf.vfs[0].settings.mac = parseMacAddress("02:00:00:00:00:01");
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  const Lease& lease = decision.leases.at(0);
  EXPECT_FALSE(settingsOf(lease).mac);
  EXPECT_FALSE(lease.original.settings.mac) << "it is not vfpass's to restore";
  EXPECT_EQ(settingsOf(lease).spoofCheck, true);
}

TEST_F(AttachToUnmanagedPf, KeepsMacsThatNewVfsHave) {
  const auto newVfs = [&] {
    VfSettings otherwise;
    for (const Step& step : decide().plan.steps) {
      if (const auto* configure = std::get_if<ConfigureVfs>(&step.action)) {
        otherwise = configure->otherwise.value_or(VfSettings{});
      }
    }
    return otherwise;
  };
  pf.reportsNoVfs = false;
  pf.vfs.clear();
  EXPECT_FALSE(newVfs().mac);
  EXPECT_EQ(newVfs().trust, false);
  input.mapping.vfs[0].macKept = false;
  input.mapping.vfs[0].macAutomatic = true;
  EXPECT_EQ(newVfs().mac, MacAddress{});
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
  EXPECT_EQ(second.leases[0].device, first[0].device);
  EXPECT_EQ(vfOf(second.leases[0]).settings.mac, vfOf(first[0]).settings.mac);
  EXPECT_EQ(second.leases[0].guest, first[0].guest);
  EXPECT_EQ(second.leases[0].original, first[0].original);
}

// The new lease is not recorded yet when the plan is made.
TEST_F(AttachTest, KeepsCreatedVfsThatTheChangedMappingNeeds) {
  const auto removes = [this] {
    const auto decision = decide();
    EXPECT_TRUE(decision.objections.empty());
    return std::ranges::any_of(decision.plan.steps, [](const Step& step) {
      return std::holds_alternative<RemoveVfs>(step.action);
    });
  };
  input.mapping.vfs[0].index = 0;
  input.leases = decide().leases;
  input.leases[0].original.created = true;
  input.mapping.vfs[0].index = 1;
  EXPECT_FALSE(removes()) << "the entry moves to another VF of the PF";
  input.mapping.vfs[0].name = "rail1";
  EXPECT_FALSE(removes()) << "another entry gets another VF of the PF";
  input.mapping.vfs = {entry("rail1", "ens2f0np0")};
  EXPECT_TRUE(removes()) << "the PF is no longer used";
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

// The mapping's entry has another name than the lease of its device.
class RenameTest : public AttachTest {
 protected:
  RenameTest() {
    input.mapping.vfs.push_back(entry("rail1", "ens1f0np0"));
    input.leases = decide().leases;
    input.xmlCurrent = true;
    input.generation = 8;
  }

  [[nodiscard]] const Lease& lease(const AttachDecision& decision, const std::string& name) const {
    return *findLease(decision.leases, input.domain, name);
  }
  // What the steps do to the records; a step of another kind has none.
  static std::vector<std::string> records(const AttachDecision& decision) {
    std::vector<std::string> lines;
    for (const Step& step : decision.plan.steps) {
      const auto* record = std::get_if<RecordLease>(&step.action);
      const auto* drop = std::get_if<DropLease>(&step.action);
      lines.push_back(record != nullptr ? "record " + record->lease.entry
                      : drop != nullptr ? "drop " + drop->entry
                                        : "other");
    }
    return lines;
  }
};

TEST_F(RenameTest, RenamesLeaseWithoutTouchingTheDevice) {
  const Lease before = input.leases[0];
  input.mapping.vfs[0].name = "rail9";
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty()) << decision.objections[0].message;
  EXPECT_EQ(records(decision), (std::vector<std::string>{"drop rail0", "record rail9", "other"}));
  Lease expected = before;
  expected.entry = "rail9";
  expected.generation = 8;
  EXPECT_EQ(lease(decision, "rail9"), expected) << "device, MAC, place and originals stay";
  const auto& [drop, record, xml] =
      std::tie(decision.plan.steps[0], decision.plan.steps[1], decision.plan.steps[2]);
  EXPECT_EQ(std::get<RecordLease>(drop.undo[0]).lease, before);
  EXPECT_EQ(std::get<DropLease>(record.undo[0]).entry, "rail9");
  EXPECT_EQ(std::get<EditDomain>(xml.undo[0]).leases[0].entry, "rail0");
  EXPECT_THAT(mappingDifferences(input, decision.leases),
              testing::ElementsAre("rail0 is called rail9 in the mapping; attach would rename it"));
}

TEST_F(RenameTest, SwapsNamesOfEntriesThatNameTheirVf) {
  for (std::size_t i = 0; i < 2; ++i) {
    input.mapping.vfs[i].index = vfOf(input.leases[i]).index;
  }
  std::swap(input.mapping.vfs[0].name, input.mapping.vfs[1].name);
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty()) << decision.objections[0].message;
  EXPECT_EQ(records(decision), (std::vector<std::string>{"drop rail0", "drop rail1", "record rail1",
                                                         "record rail0", "other"}));
  EXPECT_EQ(lease(decision, "rail1").device, input.leases[0].device);
}

TEST_F(RenameTest, SetsNewValuesUnderTheNewName) {
  input.mapping.vfs[0].index = vfOf(input.leases[0]).index;
  input.mapping.vfs[0].name = "rail9";
  input.mapping.vfs[0].settings.vlan = Vlan{9, 0, VlanProtocol::dot1q};
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(records(decision)[0], "drop rail0");
  EXPECT_EQ(records(decision)[1], "record rail9");
  EXPECT_EQ(lease(decision, "rail9").device, input.leases[0].device);
  EXPECT_EQ(lease(decision, "rail9").original, input.leases[0].original);
}

// Without that, `auto` would choose the VF as free, and the plan would give it back afterwards.
TEST_F(RenameTest, AutomaticVfPrefersTheLeaseWithItsSettings) {
  input.mapping.vfs[0].name = "rail8";
  input.mapping.vfs[0].settings.trust = true;
  input.mapping.vfs[1].name = "rail9";
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(lease(decision, "rail9").device, input.leases[0].device) << "the first with these";
  EXPECT_EQ(lease(decision, "rail8").device, input.leases[1].device);
  const auto steps = records(decision);
  EXPECT_EQ(std::ranges::count(steps, "drop rail0") + std::ranges::count(steps, "drop rail1"), 2);
  EXPECT_EQ(steps.back(), "other") << "nothing is restored after the XML";
}

TEST_F(RenameTest, IsRefusedWhileTheGuestRuns) {
  input.active = true;
  input.scope.live = true;
  input.plugged = {"rail0", "rail1"};
  input.mapping.vfs[0].name = "rail9";
  const auto decision = decide();
  ASSERT_FALSE(decision.objections.empty());
  EXPECT_TRUE(decision.plan.steps.empty());
  EXPECT_THAT(decision.objections.back().message,
              HasSubstr("rail9 is leased as rail0, and the name cannot change while the guest"));
  EXPECT_THAT(mappingDifferences(input, decision.leases).front(),
              HasSubstr("attach would rename it once the guest is shut down"));
}

TEST_F(RenameTest, NameOfAnotherLeaseIsRefused) {
  input.mapping.vfs[1].name = "rail2";
  input.mapping.vfs[1].settings.trust = true;
  input.mapping.vfs[0].name = "rail1";
  input.mapping.vfs[0].index = vfOf(input.leases[0]).index;
  const auto decision = decide();
  ASSERT_FALSE(decision.objections.empty());
  EXPECT_THAT(decision.objections.back().message,
              HasSubstr("rail1 is leased as rail0, and a lease of another device still has"));
}

}  // namespace
}  // namespace vfpass::plan
