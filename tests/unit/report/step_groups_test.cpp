// Steps of a plan that read alike, and the present values beside the new ones.
#include "step_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.hpp"

namespace vfpass::report {
namespace {

using testing::ElementsAre;

PciAddress function(unsigned number) { return {0, 0x3b, 0, static_cast<std::uint8_t>(number)}; }

Step bind(unsigned number, const std::string& reason, bool disrupts = false) {
  return {BindDriver{function(number), "vfio-pci", "vfio-pci"}, {}, reason, disrupts};
}

Step configureVlan(std::optional<Vlan> before, std::uint16_t after) {
  VfSettings wanted;
  wanted.vlan = Vlan{after};
  wanted.trust = false;
  VfSettings seen;
  seen.vlan = before;
  seen.trust = false;
  return {ConfigureVfs{function(0), {{1, wanted, {}}}},
          {ConfigureVfs{function(0), {{1, seen, {}}}}},
          "the mapping sets these values"};
}

TEST(StepGroups, JoinStepsWithEqualReasons) {
  const std::vector<Step> steps{bind(1, "a"), bind(2, "b"), bind(3, "a"), bind(4, "a")};
  const auto groups = groupSteps(steps);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].text, "bind 3 devices to vfio-pci: 0000:3b:00.1, 0000:3b:00.3, 0000:3b:00.4");
  EXPECT_THAT(groups[0].numbers, ElementsAre(1, 3, 4));
  EXPECT_EQ(groups[0].first, steps.data());
  EXPECT_EQ(groups[1].text, "bind 0000:3b:00.2 to vfio-pci");
}

TEST(StepGroups, AreSeparateAcrossOtherSteps) {
  const auto groups =
      groupSteps({bind(1, "a"), {ResetFunction{function(1)}, {}, "a"}, bind(2, "a")});
  EXPECT_EQ(groups.size(), 3U);
}

TEST(StepGroups, AreSeparateWhereOnlySomeDisrupt) {
  EXPECT_EQ(groupSteps({bind(1, "a", true), bind(2, "a", false)}).size(), 2U);
}

TEST(StepGroups, ListLongItemsInLines) {
  Lease second = samples::functionLease();
  second.entry = "evil\x1b";
  const std::vector<Step> steps{{RecordLease{samples::functionLease()}, {}, "a"},
                                {RecordLease{second}, {}, "a"}};
  const auto groups = groupSteps(steps);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].text, "lease 2 devices (running):");
  EXPECT_THAT(groups[0].items, ElementsAre("PCI function 0000:3a:00.0 as gpu0",
                                           "PCI function 0000:3a:00.0 as evil\\x1b"));
}

TEST(StepGroups, NewAndUpdatedLeasesAreSeparate) {
  const Lease lease = samples::lease();
  const std::vector<Step> steps{{RecordLease{lease}, {RecordLease{lease}}, "a"},
                                {RecordLease{lease}, {DropLease{}}, "a"}};
  EXPECT_EQ(groupSteps(steps).size(), 2U);
}

TEST(StepGroups, NumbersAsRanges) {
  EXPECT_EQ(rangesOf({7}), "7");
  EXPECT_EQ(rangesOf({1, 2, 3}), "1-3");
  EXPECT_EQ(rangesOf({11, 13, 14, 20}), "11, 13-14, 20");
}

TEST(StepText, ShowsThePresentValueOfAChange) {
  EXPECT_EQ(stepText(configureVlan(Vlan{100}, 200)),
            "configure PF 0000:3b:00.0, VF 1: vlan 100 -> 200, trust off");
}

TEST(StepText, ShowsNoValueThatIsNeutralOrUnknown) {
  const std::string text = "configure PF 0000:3b:00.0, VF 1: vlan 200, trust off";
  EXPECT_EQ(stepText(configureVlan(Vlan{}, 200)), text);
  EXPECT_EQ(stepText(configureVlan(std::nullopt, 200)), text);
}

TEST(StepText, ShowsWhatIsTakenAway) {
  EXPECT_EQ(stepText(configureVlan(Vlan{100, 3}, 0)),
            "configure PF 0000:3b:00.0, VF 1: vlan 100 qos 3 -> none, trust off");
}

TEST(StepText, CallsAnExistingLeaseUpdated) {
  Lease earlier = samples::lease();
  vfOf(earlier).settings = {};
  vfOf(earlier).settings.vlan = Vlan{100};
  vfOf(earlier).settings.trust = true;
  Lease lease = earlier;
  vfOf(lease).settings.vlan = Vlan{200};
  vfOf(lease).settings.trust.reset();
  EXPECT_EQ(stepText({RecordLease{lease}, {RecordLease{earlier}}, ""}),
            "update lease rail0 of VF 0 of PF 0000:3b:00.0: vlan 100 -> 200, trust on -> not set "
            "(running)");
  EXPECT_EQ(stepText({RecordLease{lease}, {DropLease{}}, ""}),
            "lease VF 0 of PF 0000:3b:00.0 as rail0 (running)");
}

TEST(StepText, ShowsAnotherDeviceOfALease) {
  Lease lease = samples::lease();
  vfOf(lease).index = 3;
  EXPECT_EQ(updateText(samples::lease(), lease),
            "rail0 of VF 0 of PF 0000:3b:00.0 -> VF 3 of PF 0000:3b:00.0");
}

}  // namespace
}  // namespace vfpass::report
