// Speed and width of the guest's root ports (`link-speeds: host`).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "two_card_attach.hpp"

namespace vfpass::plan {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string overrideText(const std::string& alias, const std::string& speed,
                         const std::string& width) {
  return "<qemu:device alias='ua-vfpass-" + alias +
         "'><qemu:frontend><qemu:property name='x-speed' type='string' value='" + speed +
         "'/><qemu:property name='x-width' type='string' value='" + width +
         "'/></qemu:frontend></qemu:device>";
}

// On Debian 12 with two Gen5 cards: the first in a slot of Gen4 x8.
class LinkSpeedsTest : public TwoCardAttach {
 protected:
  LinkSpeedsTest() {
    input.topology.functions[firstPort].best = {16000, 8};
    input.topology.functions[secondPort].best = {32000, 16};
    input.versions = {Version{9, 0}, Version{7, 2}};
    input.mapping.hostLinkSpeeds = true;
  }

  void setLink(const char* address, const PcieLink& link) {
    for (Device& function : input.topology.functions) {
      if (function.address == *parsePciAddress(address)) {
        function.best = link;
      }
    }
  }

  static std::vector<std::string> elementsOf(const AttachDecision& decision) {
    std::vector<std::string> elements;
    for (const DomainEdit& edit : editsOf(decision.leases)) {
      EXPECT_EQ(edit.setting, "link-speeds");
      EXPECT_EQ(edit.place, EditPlace::qemuOverride);
      elements.insert(elements.end(), edit.elements.begin(), edit.elements.end());
    }
    return elements;
  }
};

TEST_F(LinkSpeedsTest, RootPortShowsLowerEndOfHostsLink) {
  map("rail0", "ens1f0np0");
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(elementsOf(decision), ElementsAre(overrideText("bus-1", "16", "8")));
  ASSERT_THAT(decision.settings, SizeIs(1));
  EXPECT_THAT(decision.settings[0].what, HasSubstr("rail0 Gen4 x8"));
  EXPECT_THAT(decision.settings[0].reason, HasSubstr("tainted"));
  EXPECT_THAT(decision.plan.notes, Not(Contains(HasSubstr("link-speeds"))));
}

TEST_F(LinkSpeedsTest, IsNotAppliedUnlessMappingRequestsIt) {
  map("rail0", "ens1f0np0");
  input.mapping.hostLinkSpeeds = false;
  input.mapping.applyDomainSettings = true;
  const auto decision = decide();
  EXPECT_THAT(decision.settings, IsEmpty());
  EXPECT_THAT(editsOf(decision.leases), IsEmpty());
}

TEST_F(LinkSpeedsTest, SecondAttachChangesNothing) {
  map("rail0", "ens1f0np0");
  map("rail1", "ens2f0np0");
  keep(decide());
  std::swap(input.mapping.vfs[0], input.mapping.vfs[1]);
  const auto again = decide();
  EXPECT_THAT(again.plan.steps, IsEmpty());
  EXPECT_THAT(again.settings, IsEmpty());
  input.mapping.hostLinkSpeeds = false;
  EXPECT_THAT(editsOf(decide().leases), IsEmpty());
}

TEST_F(LinkSpeedsTest, Gen5NeedsQemu9) {
  map("rail1", "ens2f0np0");
  for (const auto& old : {std::optional(Version{7, 2}), std::optional<Version>()}) {
    input.versions.qemu = old;
    const auto limited = decide();
    EXPECT_THAT(elementsOf(limited), ElementsAre(overrideText("bus-1", "16", "16")));
    EXPECT_THAT(limited.plan.notes, Contains(HasSubstr("rail1 Gen4 x16 instead of Gen5 x16")));
  }
  input.versions.qemu = Version{9, 0};
  const auto whole = decide();
  EXPECT_THAT(elementsOf(whole), ElementsAre(overrideText("bus-1", "32", "16")));
  EXPECT_THAT(whole.plan.notes, Not(Contains(HasSubstr("instead of"))));
}

TEST_F(LinkSpeedsTest, SwitchPortsCannotBeSet) {
  map("rail0", "ens1f0np0");
  map("rail1", "ens1f0np0");
  const auto decision = decide();
  EXPECT_THAT(elementsOf(decision), IsEmpty());
  EXPECT_THAT(decision.plan.notes,
              Contains(AllOf(HasSubstr("2.5 GT/s x1"), HasSubstr("rail0, rail1 need NCCL's"),
                             HasSubstr("`vfpass guest-setup train0`"))));
}

TEST_F(LinkSpeedsTest, KeepsOverridesOfTheDomainsOwn) {
  map("rail0", "ens1f0np0");
  map("rail1", "ens2f0np0");
  const auto before = decide();
  ASSERT_THAT(before.leases, SizeIs(2));
  const std::string bus = std::to_string(before.leases[0].guest.address.bus);
  const std::string other = std::to_string(before.leases[1].guest.address.bus);
  input.ownLinkSpeeds = {"ua-vfpass-bus-" + bus};
  const auto decision = decide();
  EXPECT_THAT(elementsOf(decision), ElementsAre(overrideText("bus-" + other, "16", "16")));
  ASSERT_THAT(decision.settings, SizeIs(2));
  EXPECT_EQ(decision.settings[0].standing, SettingStanding::administrators);
  EXPECT_THAT(decision.settings[0].what, HasSubstr("rail0"));
}

TEST_F(LinkSpeedsTest, RefusesLibvirtWithoutOverrides) {
  map("rail0", "ens1f0np0");
  input.versions.libvirt = Version{8, 1};
  const auto decision = decide();
  ASSERT_THAT(decision.objections, SizeIs(1));
  EXPECT_EQ(decision.objections[0].code, ExitCode::badInput);
  EXPECT_THAT(decision.objections[0].message, HasSubstr("this host has libvirt 8.1 and QEMU 7.2"));
  EXPECT_THAT(decision.objections[0].remedy, HasSubstr("remove `link-speeds:`"));
}

TEST_F(LinkSpeedsTest, UnknownLinkKeepsQemusValues) {
  map("rail0", "ens1f0np0");
  setLink(firstPf, {});
  setLink("0000:00:01.0", {});
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(elementsOf(decision), IsEmpty());
  EXPECT_THAT(decision.plan.notes, Contains(HasSubstr("the host reports no link for rail0")));
}

TEST_F(LinkSpeedsTest, FlatGuestsHaveRootPortsToo) {
  map("rail0", "ens1f0np0");
  input.mapping.topology = "flat";
  input.machine.reset();
  input.placements = {{{0, 9, 0, 0}, RootPort{9, {0, 0, 9, 0}, false}, {}}};
  EXPECT_THAT(elementsOf(decide()), ElementsAre(overrideText("port-rail0", "16", "8")));
}

// A device at a port of the domain's own.
TEST_F(LinkSpeedsTest, PortsOfTheDomainAreLeftAlone) {
  map("rail0", "ens1f0np0");
  input.mapping.topology = "flat";
  input.machine.reset();
  input.placements = {{{0, 9, 0, 0}, {}, {}}};
  EXPECT_THAT(elementsOf(decide()), IsEmpty());
}

}  // namespace
}  // namespace vfpass::plan
