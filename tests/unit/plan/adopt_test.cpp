// Entries with `adopt: true`: what is taken over, what is refused, and the way out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake/fake_kernel.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/plan_detach.hpp"

namespace vfpass::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class AdoptTest : public testing::Test {
 protected:
  AdoptTest() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = "train0";
    input.mapping.vm = "train0";
    input.mapping.topology = "flat";
    input.generation = 7;
    input.bootId = "boot";
    MappedVf entry;
    entry.name = "rail0";
    entry.pf.netdev = "ens1f0np0";
    entry.index = 2;
    entry.adopt = true;
    entry.required = {Attribute::mac};
    entry.place = {"train0.yaml", 4, 5};
    input.mapping.vfs = {entry};
    vf().settings.mac = parseMacAddress("52:54:00:00:00:02");
    vf().settings.vlan = Vlan{42, 0, VlanProtocol::dot1q};
    element.device = vf().address;
    element.managed = true;
    element.guestAddress = PciAddress{0, 6, 0, 0};
    element.text = "<hostdev/>";
    input.elements = {element};
    domain = {input.domain, "train0", false, true, {{element.device, "", {}}}, {}, {}};
    input.domains = {domain};
  }

  VirtualFunction& vf() { return kernel.pfs.at(*parsePciAddress("0000:01:00.0")).vfs[2]; }

  void run() {
    input.active = true;
    input.scope.live = true;
    input.liveElements = input.elements;
    input.domains[0].active = true;
    vf().driver = "vfio-pci";
    kernel.holders = {
        {HolderKind::vfio, vf().address, "QEMU has it open", "stop it", input.domain}};
  }

  AttachDecision decide() {
    input.inventory = kernel.inventory();
    std::erase_if(input.inventory.holders,
                  [](const Holder& holder) { return holder.description != "QEMU has it open"; });
    input.inventory.holders.insert(input.inventory.holders.end(), kernel.holders.begin(),
                                   kernel.holders.end());
    return planAttach(input);
  }

  Objection objection() {
    const auto decision = decide();
    EXPECT_EQ(decision.objections.size(), 1U);
    EXPECT_THAT(decision.plan.steps, IsEmpty());
    return decision.objections.empty() ? Objection{} : decision.objections[0];
  }

  template <typename Kind>
  static std::size_t count(const Plan& plan) {
    std::size_t found = 0;
    for (const Step& step : plan.steps) {
      found += std::holds_alternative<Kind>(step.action) ? 1 : 0;
    }
    return found;
  }

  fake::FakeKernel kernel;
  AttachInput input;
  HostElement element;
  DomainSummary domain;
};

TEST_F(AdoptTest, LeaseHasWhatElementAndVfHave) {
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  const Lease& lease = decision.leases.at(0);
  EXPECT_EQ(lease.adoptedElement, "<hostdev/>");
  EXPECT_TRUE(lease.managed);
  EXPECT_EQ(lease.guest.address, *element.guestAddress);
  EXPECT_FALSE(lease.guest.port);
  EXPECT_EQ(vfOf(lease).settings.mac, vf().settings.mac);
  EXPECT_EQ(vfOf(lease).settings.vlan, vf().settings.vlan);
  EXPECT_EQ(lease.original.settings.mac, vf().settings.mac);
  EXPECT_EQ(count<ConfigureVfs>(decision.plan), 0U);
  EXPECT_EQ(count<BindDriver>(decision.plan), 0U) << "libvirt binds it";
  EXPECT_EQ(count<EditDomain>(decision.plan), 1U);
}

TEST_F(AdoptTest, VfOfPfThatManagesNoVfsKeepsWhatNobodyCanRead) {
  kernel.pfs.at(*parsePciAddress("0000:01:00.0")).reportsNoVfs = true;
  vf().settingsReadable = false;
  vf().settings = {};
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(acceptedSettings(decision.leases.at(0)), VfSettings{});
}

TEST_F(AdoptTest, UnmanagedDeviceIsBoundForTheNextStart) {
  input.elements[0].managed = false;
  EXPECT_EQ(count<BindDriver>(decide().plan), 1U);
}

TEST_F(AdoptTest, MappingMayChangeSettingsOfAStoppedGuest) {
  input.mapping.vfs[0].settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
  const auto decision = decide();
  EXPECT_EQ(count<ConfigureVfs>(decision.plan), 1U);
  EXPECT_EQ(decision.leases.at(0).original.settings.vlan->id, 42);
}

TEST_F(AdoptTest, RunningGuestGetsMetadataAndALeaseOnly) {
  run();
  input.elements[0].managed = false;
  input.liveElements = input.elements;
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(decision.leases.at(0).state, LeaseState::running);
  EXPECT_EQ(decision.plan.steps.size(), 3U);
  EXPECT_EQ(count<RecordLease>(decision.plan), 1U);
  EXPECT_EQ(count<EditDomain>(decision.plan), 1U);
  EXPECT_EQ(count<EditLiveMetadata>(decision.plan), 1U);
}

TEST_F(AdoptTest, PlanSaysThatOnlyMetadataIsWritten) {
  const auto isEdit = [](const Step& step) {
    return std::holds_alternative<EditDomain>(step.action);
  };
  auto plan = decide().plan;
  auto edit = std::ranges::find_if(plan.steps, isEdit);
  ASSERT_NE(edit, plan.steps.end());
  EXPECT_EQ(describe(edit->action), "list rail0 in the metadata of the domain XML");
  EXPECT_EQ(edit->reason, "at each start the hook prepares the devices listed there");
  auto& leases = std::get<EditDomain>(edit->action).leases;
  leases.push_back(leases.front());
  leases.back().entry = "rail1";
  leases.back().adoptedElement.clear();
  EXPECT_EQ(describe(edit->action), "write rail0, rail1 into the domain XML");
}

TEST_F(AdoptTest, RunningGuestsSettingsAreNotChanged) {
  run();
  input.mapping.vfs[0].settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
  EXPECT_THAT(objection().message, HasSubstr("taking a device over changes nothing in it"));
}

TEST_F(AdoptTest, HolderOfAnotherDomainIsAnObjection) {
  run();
  kernel.holders[0].domain = parseUuid("ffffffff-1111-4222-8333-944455566677");
  EXPECT_THAT(objection().message, HasSubstr("QEMU has it open"));
}

TEST_F(AdoptTest, SecondAttachHasNothingToDo) {
  run();
  input.leases = decide().leases;
  input.plugged = {"rail0"};
  input.liveLeases = input.leases;
  input.xmlCurrent = true;
  const auto again = decide();
  EXPECT_THAT(again.objections, IsEmpty());
  EXPECT_THAT(again.plan.steps, IsEmpty());
}

TEST_F(AdoptTest, WithoutTheWordTheRemedyNamesIt) {
  input.mapping.vfs[0].adopt = false;
  const auto found = objection();
  EXPECT_THAT(found.message, HasSubstr("that vfpass did not create"));
  EXPECT_THAT(found.remedy, HasSubstr("`adopt: true`"));
  EXPECT_THAT(found.remedy, HasSubstr("`vfpass import train0`"));
}

TEST_F(AdoptTest, RefusesWhatTheDomainDoesNotHave) {
  input.elements.clear();
  input.domains[0].claims.clear();
  EXPECT_THAT(objection().message, HasSubstr("has no <hostdev>"));
}

TEST_F(AdoptTest, RefusesADeviceThatTheDomainClaimsTwice) {
  input.elements.push_back(element);
  EXPECT_THAT(objection().message, HasSubstr("more than once"));
}

TEST_F(AdoptTest, RefusesADeviceThatAnotherDomainClaims) {
  DomainSummary other = domain;
  other.uuid = *parseUuid("ffffffff-1111-4222-8333-944455566677");
  other.name = "other";
  input.domains.push_back(other);
  EXPECT_THAT(objection().message, HasSubstr("is claimed by domain other"));
}

TEST_F(AdoptTest, RefusesADomainThatAnotherProgramManages) {
  input.manager = "OpenStack";
  EXPECT_THAT(objection().message, HasSubstr("is managed by OpenStack"));
}

TEST_F(AdoptTest, RefusesADeviceOfAPool) {
  input.pools = {{"pool", {element.device}, {}}};
  EXPECT_THAT(objection().message, HasSubstr("chooses a device at each start"));
}

TEST_F(AdoptTest, RefusesADeviceThatOnlyOneConfigurationHas) {
  run();
  input.liveElements.clear();
  kernel.holders.clear();
  EXPECT_THAT(objection().message, HasSubstr("but the running guest does not"));
  input.liveElements = input.elements;
  input.elements.clear();
  EXPECT_THAT(objection().message, HasSubstr("its persistent configuration does not"));
}

TEST_F(AdoptTest, RefusesOneOfTwoConfigurations) {
  run();
  input.scope.config = false;
  EXPECT_THAT(objection().remedy, HasSubstr("omit --config and --live"));
}

TEST_F(AdoptTest, TrustedVfNeedsAWord) {
  vf().settings.trust = true;
  EXPECT_THAT(objection().message, HasSubstr("is trusted"));
  input.mapping.allow = {Allowance::trust};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(AdoptTest, InterfaceKeepsItsMac) {
  input.elements[0].interface = true;
  input.elements[0].mac = parseMacAddress("52:54:00:00:00:09");
  EXPECT_EQ(vfOf(decide().leases.at(0)).settings.mac, input.elements[0].mac);
  input.mapping.vfs[0].macAutomatic = false;
  input.mapping.vfs[0].settings.mac = parseMacAddress("52:54:00:00:00:0a");
  EXPECT_THAT(objection().message, HasSubstr("52:54:00:00:00:09"));
}

// libvirt has set the MAC of the running one, and the lease would record that of the definition.
TEST_F(AdoptTest, RefusesRunningInterfaceThatDiffersFromItsDefinition) {
  input.elements[0].interface = true;
  input.elements[0].mac = parseMacAddress("52:54:00:00:00:09");
  run();
  EXPECT_THAT(decide().objections, IsEmpty());
  input.liveElements[0].mac = parseMacAddress("52:54:00:00:00:0b");
  const auto found = objection();
  EXPECT_THAT(found.message, HasSubstr("by an <interface> with MAC 52:54:00:00:00:0b and VLAN 0"));
  EXPECT_THAT(found.message,
              HasSubstr("configuration by an <interface> with MAC 52:54:00:00:00:09"));
  EXPECT_THAT(found.remedy, HasSubstr("`virsh edit train0`"));
  input.liveElements = input.elements;
  input.liveElements[0].vlan = 7;
  EXPECT_THAT(objection().message, HasSubstr("and VLAN 7"));
  input.liveElements[0] = element;
  EXPECT_THAT(objection().message, HasSubstr("by a <hostdev>"));
}

// libvirt would set the element's values at each start, and the lease would record others.
TEST_F(AdoptTest, InterfaceKeepsMacAndVlanAfterItWasTakenOver) {
  input.elements[0].interface = true;
  input.elements[0].mac = parseMacAddress("52:54:00:00:00:09");
  input.elements[0].vlan = 42;
  input.leases = decide().leases;
  MappedVf& entry = input.mapping.vfs[0];
  entry.macAutomatic = false;
  entry.settings.mac = parseMacAddress("52:54:00:00:00:0a");
  auto found = objection();
  EXPECT_THAT(found.message, HasSubstr("52:54:00:00:00:09"));
  EXPECT_THAT(found.remedy, HasSubstr("`vfpass detach train0`"));
  EXPECT_EQ(found.code, ExitCode::badInput);
  entry.settings.mac = input.elements[0].mac;
  for (const Vlan vlan : {Vlan{100}, Vlan{42, 3}}) {
    entry.settings.vlan = vlan;
    EXPECT_THAT(objection().message, HasSubstr("libvirt sets the VLAN"));
  }
  entry.settings.vlan = Vlan{42};
  EXPECT_THAT(decide().objections, IsEmpty());
}

TEST_F(AdoptTest, FormIsCheckedAfterItWasTakenOver) {
  kernel.pfs.at(*parsePciAddress("0000:01:00.0")).netdevs.at(0).up = true;
  input.elements[0].managed = false;
  input.leases = decide().leases;
  MappedVf& entry = input.mapping.vfs[0];
  entry.interfaceForm = true;
  EXPECT_THAT(objection().message, HasSubstr("the domain's element is a <hostdev>"));
  entry.interfaceForm = false;
  entry.teamingWith = "net0";
  EXPECT_THAT(objection().message, HasSubstr("is not teamed with net0"));
  input.elements[0].partner = "ua-net0";
  EXPECT_THAT(decide().objections, IsEmpty());
}

// The VF of a <hostdev> has them from vfpass.
TEST_F(AdoptTest, VlanOfAHostdevCanChangeAfterItWasTakenOver) {
  input.leases = decide().leases;
  input.mapping.vfs[0].settings.vlan = Vlan{100};
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(vfOf(decision.leases.at(0)).settings.vlan, Vlan{100});
}

TEST_F(AdoptTest, VfWithoutAMacKeepsIt) {
  vf().settings.mac = MacAddress{};
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_TRUE(keepsMac(decision.leases.at(0)));
}

TEST_F(AdoptTest, MirrorIsRefusedOnceADeviceIsTakenOver) {
  input.leases = decide().leases;
  input.mapping.topology = "mirror";
  input.machine = GuestMachine{};
  EXPECT_THAT(objection().message, HasSubstr("would move rail0"));
}

TEST_F(AdoptTest, EntryOfAnotherDeviceTakesItsElementOver) {
  input.leases = decide().leases;
  VirtualFunction& next = kernel.pfs.at(*parsePciAddress("0000:01:00.0")).vfs[3];
  HostElement other = element;
  other.device = next.address;
  other.guestAddress = PciAddress{0, 7, 0, 0};
  other.text = "<hostdev managed='yes'/>";
  input.elements.push_back(other);
  input.domains[0].claims.push_back({other.device, "", {}});
  input.mapping.vfs[0].index = 3;
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(decision.leases.at(0).device, other.device);
  EXPECT_EQ(decision.leases.at(0).adoptedElement, other.text);
}

// Its element stays in the domain: a second one for the same device would be added.
TEST_F(AdoptTest, AutomaticVfIsNotTheOneThatAnotherEntryTookOverBefore) {
  input.leases = decide().leases;
  MappedVf& moved = input.mapping.vfs[0];
  moved.adopt = false;
  moved.index = 3;
  MappedVf added = moved;
  added.name = "rail1";
  added.index.reset();
  input.mapping.vfs.push_back(added);
  DomainSummary other = domain;
  other.uuid = *parseUuid("0f5e9a3c-2222-4222-8333-944455566677");
  other.name = "train1";
  const auto& vfs = kernel.pfs.at(*parsePciAddress("0000:01:00.0")).vfs;
  other.claims = {{vfs[0].address, "", {}}};
  input.domains.push_back(other);
  input.placements = {{{0, 1, 0, 0}, std::nullopt, {}}, {{0, 2, 0, 0}, std::nullopt, {}}};
  EXPECT_EQ(vfOf(decide().leases.at(1)).index, 1U);
  input.domains.back().claims.push_back({vfs[1].address, "", {}});
  EXPECT_THAT(
      objection().message,
      testing::AllOf(HasSubstr("no free VF"), HasSubstr("claimed by a hostdev of this domain")));
}

// `detach --keep` has renamed the device in the persistent configuration only.
TEST_F(AdoptTest, DeviceLeftToTheRunningGuestIsTakenOverAgain) {
  input.elements[0].text = "<hostdev><alias name='ua-kept-rail0'/></hostdev>";
  run();
  input.liveElements[0].managed = false;
  input.liveElements[0].text = "<hostdev><alias name='ua-vfpass-rail0'/></hostdev>";
  input.domains[0].claims = {{element.device, "ua-kept-rail0", {}},
                             {element.device, "ua-vfpass-rail0", {}}};
  input.plugged = {"rail0"};
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(decision.leases.at(0).adoptedElement, input.elements[0].text);
  EXPECT_EQ(decision.leases.at(0).state, LeaseState::running);
  EXPECT_EQ(decision.plan.steps.size(), 3U) << "lease and metadata of both configurations";
  EXPECT_EQ(count<PlugDevice>(decision.plan), 0U);
}

class LeaveTest : public AdoptTest {
 protected:
  DetachInput detachInput() {
    DetachInput detach;
    detach.domain = input.domain;
    detach.domainName = "train0";
    detach.scope = input.scope;
    detach.leases = decide().leases;
    detach.inventory = input.inventory;
    detach.xmlIsOurs = true;
    if (input.active) {
      detach.plugged = {"rail0"};
      detach.liveLeases = detach.leases;
    }
    return detach;
  }
};

TEST_F(LeaveTest, RunningGuestKeepsWhatWasTakenOver) {
  run();
  const Plan plan = planDetach(detachInput());
  EXPECT_EQ(plan.steps.size(), 3U);
  EXPECT_EQ(count<EditLiveMetadata>(plan), 1U);
  EXPECT_EQ(count<EditDomain>(plan), 1U);
  EXPECT_EQ(count<DropLease>(plan), 1U);
}

TEST_F(LeaveTest, StoppedGuestKeepsItsElement) {
  const Plan plan = planDetach(detachInput());
  ASSERT_EQ(count<DropLease>(plan), 1U);
  EXPECT_EQ(plan.steps.back().reason, "its element belongs to the domain");
}

// Its element stays in the domain, which could not start any more.
TEST_F(LeaveTest, VfThatWasTakenOverIsNotRemoved) {
  DetachInput detach = detachInput();
  for (Lease& lease : detach.leases) {
    lease.original.created = true;
  }
  EXPECT_EQ(count<RemoveVfs>(planDetach(detach)), 0U);
  detach.leases.at(0).adoptedElement.clear();
  EXPECT_EQ(count<RemoveVfs>(planDetach(detach)), 1U);
}

TEST_F(LeaveTest, KeepLeavesEverythingAndSetsWhatTheNextStartNeeds) {
  DetachInput detach = detachInput();
  detach.keep = true;
  detach.inventory.pfs.at(0).vfs[2].settings.vlan = Vlan{};
  detach.inventory.pfs.at(0).vfs[2].settings.mac = MacAddress{};
  const Plan plan = planDetach(detach);
  EXPECT_EQ(plan.steps.size(), 3U);
  const auto& configure = std::get<ConfigureVfs>(plan.steps.at(0).action);
  EXPECT_EQ(configure.vfs.at(0).settings.vlan->id, 42);
  EXPECT_EQ(std::get<EditDomain>(plan.steps.at(1).action).kept.size(), 1U);
  EXPECT_EQ(count<DropLease>(plan), 1U);
}

}  // namespace
}  // namespace vfpass::plan
