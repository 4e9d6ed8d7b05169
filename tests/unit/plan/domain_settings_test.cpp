// The lease that carries the edits of domain settings, and the settings that attach applies.
#include "attach_decisions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"

namespace vfpass::plan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

DomainSetting setting(const std::string& name, const std::string& value = "1") {
  return {name, name, "a reason", SettingStanding::proposed,
          DomainEdit{name, EditPlace::memtune, {"<" + name + ">" + value + "</" + name + ">"}}};
}

class DomainSettings : public testing::Test {
 protected:
  DomainSettings() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    input.inventory = kernel.inventory();
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = input.mapping.vm = "train0";
    input.mapping.applyDomainSettings = true;
    input.generation = 7;
    for (const char* name : {"rail0", "rail1"}) {
      MappedVf vf;
      vf.name = name;
      vf.pf.netdev = "ens1f0np0";
      input.mapping.vfs.push_back(vf);
      const auto bus = static_cast<std::uint8_t>(input.mapping.vfs.size());
      input.placements.push_back({{0, bus, 0, 0}, RootPort{bus, {0, 0, bus, 0}, false}, {}});
    }
  }

  void keep(const AttachDecision& decision) {
    input.leases = decision.leases;
    input.xmlCurrent = true;
  }

  fake::FakeKernel kernel;
  AttachInput input;
};

TEST_F(DomainSettings, AreCarriedByOneLease) {
  input.settings = {setting("one"), setting("two")};
  const auto decision = planAttach(input);
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(decision.leases[0].edits, SizeIs(2));
  EXPECT_THAT(decision.leases[1].edits, IsEmpty());
  EXPECT_THAT(decision.settings, SizeIs(2));
}

TEST_F(DomainSettings, AreUnchangedBySecondAttach) {
  input.settings = {setting("one")};
  keep(planAttach(input));
  const auto again = planAttach(input);
  EXPECT_THAT(again.plan.steps, IsEmpty());
  EXPECT_THAT(again.settings, IsEmpty()) << "applied settings are not proposed";
  EXPECT_THAT(changedSettings(input, again.leases), IsEmpty());
}

TEST_F(DomainSettings, StayOnTheirLeaseWhenEntriesChange) {
  input.settings = {setting("one")};
  keep(planAttach(input));
  std::swap(input.leases[0].edits, input.leases[1].edits);
  const auto again = planAttach(input);
  EXPECT_THAT(again.plan.steps, IsEmpty());
  EXPECT_THAT(again.leases[1].edits, SizeIs(1));
  input.mapping.vfs.pop_back();
  const auto without = planAttach(input);
  ASSERT_THAT(without.leases, SizeIs(1));
  EXPECT_THAT(without.leases[0].edits, SizeIs(1)) << "their lease was removed";
}

TEST_F(DomainSettings, AreOnlyReportedByDefault) {
  input.mapping.applyDomainSettings = false;
  input.settings = {setting("one"), setting("gpu-clique")};
  const auto decision = planAttach(input);
  EXPECT_THAT(editsOf(decision.leases), ElementsAre(*setting("gpu-clique").edit))
      << "that one is requested by name";
  EXPECT_THAT(decision.settings, SizeIs(2));
}

TEST_F(DomainSettings, AreRemovedWhenMappingSwitchesToShow) {
  input.settings = {setting("one")};
  keep(planAttach(input));
  input.mapping.applyDomainSettings = false;
  const auto decision = planAttach(input);
  EXPECT_THAT(editsOf(decision.leases), IsEmpty());
  EXPECT_THAT(mappingDifferences(input, decision.leases), Contains(HasSubstr("change one")));
}

TEST_F(DomainSettings, AreKeptByLiveAttach) {
  input.settings = {setting("one")};
  keep(planAttach(input));
  input.settings.clear();
  input.active = true;
  input.scope = {false, true};
  input.plugged = {"rail0", "rail1"};
  const auto decision = planAttach(input);
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(editsOf(decision.leases), SizeIs(1));
}

TEST_F(DomainSettings, ApplyToNextStartOfRunningGuest) {
  keep(planAttach(input));
  input.settings = {setting("one")};
  input.active = true;
  input.scope = {true, true};
  input.plugged = {"rail0", "rail1"};
  for (Lease& lease : input.leases) {
    lease.state = LeaseState::running;
  }
  const auto decision = planAttach(input);
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_THAT(editsOf(decision.leases), SizeIs(1));
}

TEST_F(DomainSettings, FaultsAreBadInput) {
  input.settingFaults = {{"gpu0 and gpu1 share clique 0", "remove it", ExitCode::badInput}};
  const auto decision = planAttach(input);
  ASSERT_THAT(decision.objections, SizeIs(1));
  EXPECT_EQ(worstCode(decision.objections), ExitCode::badInput);
  EXPECT_THAT(decision.plan.steps, IsEmpty());
}

}  // namespace
}  // namespace vfpass::plan
