// `host apply` with the fake kernel: run it, roll back at every step, recover from a kill at every
// effect.
#include "host_plans.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "vfpass/apply/recover.hpp"

namespace vfpass::apply {
namespace {

using testing::HasSubstr;

PhysicalFunction& pfOf(Host& host) { return host.kernel.pfs.begin()->second; }

struct Change {
  const char* name;
  Plan (*plan)(Host&);
};

// SoftRoCE link numbers differ every time; the records must have the right ones.
std::string stateOf(Host& host) {
  std::ostringstream text;
  text << host.fingerprint();
  for (const auto& [pf, settings] : host.kernel.pfSettings) {
    text << toString(pf) << ' ' << toString(settings.eswitchMode.value()) << ' '
         << settings.link->mtu << ' ' << settings.link->up << '\n';
  }
  auto input = softRoceInput(host);
  for (const auto& decision :
       plan::decideSoftRoce({}, input.found, input.records, host.kernel.boot)) {
    text << decision.name << ' ' << (decision.found ? decision.found->netdev : "gone")
         << (decision.ours ? " ours" : "") << (decision.forget ? " stale" : "") << '\n';
  }
  return text.str();
}

class HostApplyTest : public testing::TestWithParam<Change> {
 protected:
  static void prepare(Host& host) {
    makeLinks(host);
    host.kernel.effects = 0;
  }
  static int effectsOf(const Change& change) {
    Host host;
    prepare(host);
    host.execute(change.plan(host));
    return host.kernel.effects;
  }
};

TEST_P(HostApplyTest, AppliesThePolicyAndIsIdempotent) {
  Host host;
  prepare(host);
  const std::string before = stateOf(host);
  const Plan plan = GetParam().plan(host);
  ASSERT_FALSE(plan.steps.empty());
  host.execute(plan);
  EXPECT_NE(stateOf(host), before);
  EXPECT_THAT(GetParam().plan(host).steps, testing::IsEmpty());
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST_P(HostApplyTest, FailureAtAnyStepIsRolledBack) {
  const int effects = effectsOf(GetParam());
  ASSERT_GT(effects, 2);
  for (int effect = 0; effect < effects; ++effect) {
    Host host;
    prepare(host);
    const std::string before = stateOf(host);
    const Plan plan = GetParam().plan(host);
    host.kernel.failAtEffect = effect;
    EXPECT_THROW(host.execute(plan), Error) << effect;
    host.kernel.failAtEffect = -1;
    EXPECT_EQ(stateOf(host), before) << effect;
    EXPECT_TRUE(host.recoverAll().empty()) << effect;
  }
}

TEST_P(HostApplyTest, RecoverRollsBackAfterAKillAtAnyEffect) {
  const int effects = effectsOf(GetParam());
  for (const bool afterEffect : {false, true}) {
    for (int effect = 0; effect < effects; ++effect) {
      Host host;
      prepare(host);
      const std::string before = stateOf(host);
      const Plan plan = GetParam().plan(host);
      (afterEffect ? host.kernel.killAfterEffect : host.kernel.killBeforeEffect) = effect;
      EXPECT_THROW(host.execute(plan), fake::Killed);
      host.kernel.killAfterEffect = host.kernel.killBeforeEffect = -1;
      const auto ended = host.recoverAll();
      ASSERT_EQ(ended.size(), 1U);
      EXPECT_THAT(ended[0], HasSubstr("interrupted " + describeWork(plan) + ": "));
      EXPECT_EQ(stateOf(host), before) << (afterEffect ? "after " : "before ") << effect;
      EXPECT_TRUE(host.recoverAll().empty());
    }
  }
}

// Recovery itself can be killed; the next one continues.
TEST_P(HostApplyTest, NextRecoveryCompletesAKilledOne) {
  const int effects = effectsOf(GetParam());
  for (const bool afterEffect : {false, true}) {
    for (int effect = 0; effect < effects; ++effect) {
      Host host;
      prepare(host);
      const std::string before = stateOf(host);
      const Plan plan = GetParam().plan(host);
      host.kernel.killAfterEffect = effects - 1;
      EXPECT_THROW(host.execute(plan), fake::Killed);
      host.kernel.effects = 0;
      host.kernel.killAfterEffect = afterEffect ? effect : -1;
      host.kernel.killBeforeEffect = afterEffect ? -1 : effect;
      try {
        host.recoverAll();
      } catch (const fake::Killed&) {
        host.kernel.killAfterEffect = host.kernel.killBeforeEffect = -1;
        EXPECT_EQ(host.recoverAll().size(), 1U);
      }
      EXPECT_EQ(stateOf(host), before) << (afterEffect ? "after " : "before ") << effect;
    }
  }
}

TEST_P(HostApplyTest, RecoveryAfterARebootChangesNothingInTheKernel) {
  Host host;
  prepare(host);
  const Plan plan = GetParam().plan(host);
  host.kernel.killAfterEffect = 1;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.kernel.killAfterEffect = -1;
  host.kernel.reboot();
  host.kernel.effects = 0;
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.kernel.effects, 0);
}

INSTANTIATE_TEST_SUITE_P(Changes, HostApplyTest,
                         testing::Values(Change{"count", planOtherCount},
                                         Change{"mode", planOtherMode},
                                         Change{"links", planOtherLinks}),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(HostApply, CountChangeKeepsManuallySetAttributes) {
  Host host;
  const VfSettings byHand = pfOf(host).vfs[1].settings;
  host.kernel.leftOvers[pfOf(host).address][5].trust = true;
  host.execute(planOtherCount(host));
  ASSERT_EQ(pfOf(host).vfs.size(), 6U);
  EXPECT_EQ(pfOf(host).vfs[1].settings, byHand);
  EXPECT_EQ(pfOf(host).vfs[5].settings, neutralSettings(false));
}

TEST(HostApply, RecoveryNeedsNoHypervisor) {
  Host host;
  host.kernel.killAfterEffect = 0;
  EXPECT_THROW(host.execute(planOtherCount(host)), fake::Killed);
  host.kernel.killAfterEffect = -1;
  state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  Tools tools = host.tools(database);
  tools.hypervisor = nullptr;
  const auto recovered = recover(tools, Uuid{});
  ASSERT_EQ(recovered.done.size(), 1U);
  EXPECT_EQ(recovered.done.front().line, "interrupted host apply of PF 0000:01:00.0: rolled back");
  EXPECT_EQ(pfOf(host).vfs.size(), 4U);
}

TEST(HostApply, RecoveryKeepsVfsThatAVmUses) {
  Host host;
  const Plan plan = planOtherCount(host);
  host.kernel.killAfterEffect = 1;  // removed and created
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.kernel.killAfterEffect = -1;
  ASSERT_EQ(pfOf(host).vfs.size(), 6U);
  pfOf(host).vfs[2].driver = "vfio-pci";
  const auto ended = host.recoverAll();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_THAT(ended[0], HasSubstr("left as it is"));
  EXPECT_EQ(pfOf(host).vfs.size(), 6U);
  EXPECT_TRUE(host.recoverAll().empty());
}

// Its recovery was not possible while an attach created VFs.
TEST(HostApply, RecoveryKeepsTheModeOfVfsThatAVmUses) {
  Host host(0);
  auto input = hostInput(host);
  input.policy.eswitchMode = "switchdev";
  const Plan plan = plan::planHost(input).plan;
  host.kernel.killAfterEffect = 0;
  EXPECT_THROW(host.execute(plan), fake::Killed);
  host.kernel.killAfterEffect = -1;
  host.kernel.createVfs({pfAddress, 2, true});
  pfOf(host).vfs.at(0).driver = "vfio-pci";
  const auto ended = host.recoverAll();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_THAT(ended[0], HasSubstr("left as it is"));
  EXPECT_EQ(host.kernel.pfSettings[pfAddress].eswitchMode, EswitchMode::switchdev);
  EXPECT_TRUE(host.recoverAll().empty());
}

TEST(HostApply, KeepsLinkThatIsInUse) {
  Host host;
  makeLinks(host);
  const Plan plan = planOtherLinks(host);
  host.kernel.usersOfRdma[host.kernel.rdmaLinks[0].number.value()] = {"process 7 (ib_write_bw)"};
  const std::string before = stateOf(host);
  try {
    host.execute(plan);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::refused);
    EXPECT_THAT(error.what(), HasSubstr("process 7 (ib_write_bw)"));
  }
  EXPECT_EQ(stateOf(host), before);
}

TEST(HostApply, RecoveryKeepsUnchangedLinks) {
  Host host;
  makeLinks(host);
  const auto links = host.kernel.rdmaLinks;
  host.kernel.effects = 0;
  host.kernel.killBeforeEffect = 0;
  EXPECT_THROW(host.execute(planOtherLinks(host)), fake::Killed);
  host.kernel.killBeforeEffect = -1;
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.kernel.rdmaLinks, links);
}

TEST(HostApply, TakesBackALinkThatWasCreatedWithoutAnAnswer) {
  Host host;
  makeLinks(host);
  const auto before = stateOf(host);
  host.kernel.losesReplyOfLink = true;
  EXPECT_THROW(host.execute(planOtherLinks(host)), Error);
  EXPECT_EQ(stateOf(host), before);
  EXPECT_TRUE(host.recoverAll().empty());
  host.execute(planOtherLinks(host));
  EXPECT_NE(stateOf(host), before);
}

TEST(HostApply, RecoveryKeepsLinksOfOthers) {
  Host host;
  auto input = softRoceInput(host);
  input.policy = {{"rxe0", "eth0", {}}};
  host.kernel.killBeforeEffect = 0;
  EXPECT_THROW(host.execute(plan::planSoftRoce(input).plan), fake::Killed);
  host.kernel.killBeforeEffect = -1;
  host.kernel.rdmaLinks = {{"rxe0", true, "eth9", 7}};
  EXPECT_EQ(host.recoverAll().size(), 1U);
  EXPECT_EQ(host.kernel.rdmaLinks.size(), 1U);
}

}  // namespace
}  // namespace vfpass::apply
