// Every step that may have to be rolled back has an inverse, in plans of every kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "host_plans.hpp"
#include "perform.hpp"

namespace vfpass::apply {
namespace {

struct PlanToRollBack {
  const char* name;
  Plan (*plan)(Host&);
};

Plan attachToNewVfs(Host& host) {
  host.kernel.pfs.begin()->second.vfs.clear();
  return host.attachPlan();
}

// rail0 asks for vectors, which the kernel changes only while no driver is bound: host.yaml lets
// the host's driver bind to new VFs.
Plan attachToNewVfsOfTheHostDriver(Host& host) {
  host.shareVectors();
  host.kernel.pfs.begin()->second.vfs.clear();
  auto input = host.attachInput(1);
  input.policy.pfs.back().probeVfs = true;
  return plan::planAttach(input).plan;
}

Plan attachWithVectors(Host& host) {
  host.shareVectors();
  return host.attachPlan();
}

Plan attachFunction(Host& host) {
  host.kernel.addFunction("0000:3a:00.0", "nvidia");
  host.mapping.functions.push_back({"gpu0", *parsePciAddress("0000:3a:00.0"), {"train0.yaml"}});
  return host.attachPlan();
}

Plan attachLive(Host& host) {
  host.start();
  host.scope = {true, true};
  return host.attachPlan();
}

// Another VLAN for rail0, without rail1, whose restoration is beyond the point of no return.
Plan attachChanged(Host& host) {
  host.attach();
  host.mapping.vfs[0].settings.vlan = Vlan{200, 0, VlanProtocol::dot1q};
  host.mapping.vfs.pop_back();
  return host.attachPlan();
}

Plan attachRenamed(Host& host) {
  host.attach();
  host.mapping.vfs[0].name = "rail9";
  return host.attachPlan();
}

Plan detachConfigured(Host& host) {
  host.attach();
  return host.detachPlan();
}

Plan detachRunning(Host& host) {
  host.start();
  host.scope = {true, true};
  host.attach();
  return host.detachPlan();
}

Plan prepareUnchanged(Host& host) {
  host.attach();
  return host.preparePlan();
}

Plan prepareAfterReboot(Host& host) {
  host.attach();
  host.kernel.reboot();
  return host.preparePlan();
}

Plan otherLinks(Host& host) {
  makeLinks(host);
  return planOtherLinks(host);
}

// A step on the domain is rolled back also in a detach (run.cpp, isReversible).
bool mayBeRolledBack(const Plan& plan, std::size_t at) {
  return at < restorationBegin(plan) || isDomainAction(plan.steps[at].action);
}

bool setsBack(const std::vector<Action>& undo, const ConfigureVfs& configured) {
  return std::ranges::all_of(configured.vfs, [&](const VfChange& change) {
    return std::ranges::any_of(undo, [&](const Action& action) {
      const auto* earlier = std::get_if<ConfigureVfs>(&action);
      return earlier != nullptr && earlier->pf == configured.pf &&
             std::ranges::find(earlier->vfs, change.index, &VfChange::index) != earlier->vfs.end();
    });
  });
}

bool hasInverse(const Step& step) {
  const auto* configured = std::get_if<ConfigureVfs>(&step.action);
  return !step.undo.empty() && (configured == nullptr || setsBack(step.undo, *configured));
}

// The inverse of a creation removes the VFs, and with them what later steps have changed: their
// values and the driver that is bound to them. Plans with a creation here have one PF only.
bool isTakenBackWithItsVfs(const Plan& plan, std::size_t at) {
  const Action& action = plan.steps[at].action;
  const auto end = plan.steps.begin() + static_cast<std::ptrdiff_t>(at);
  const bool isNew = std::any_of(plan.steps.begin(), end, [](const Step& step) {
    return std::holds_alternative<CreateVfs>(step.action) &&
           std::ranges::any_of(step.undo, [](const Action& undo) {
             return std::holds_alternative<RemoveVfs>(undo);
           });
  });
  return isNew && (std::holds_alternative<ConfigureVfs>(action) ||
                   std::holds_alternative<BindDriver>(action));
}

class InverseTest : public testing::TestWithParam<PlanToRollBack> {};

TEST_P(InverseTest, ExistsForEveryStepBeforeThePointOfNoReturn) {
  Host host;
  host.attachPlan();  // creates the database, like any command
  const Plan plan = GetParam().plan(host);
  int reversible = 0;
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    if (mayBeRolledBack(plan, at)) {
      ++reversible;
      EXPECT_TRUE(hasInverse(plan.steps[at]) || isTakenBackWithItsVfs(plan, at))
          << describe(plan.steps[at].action);
    }
  }
  EXPECT_GT(reversible, 0);
}

// A release is always completed, so it is not among them.
INSTANTIATE_TEST_SUITE_P(
    Plans, InverseTest,
    testing::Values(
        PlanToRollBack{"Attach", [](Host& host) { return host.attachPlan(); }},
        PlanToRollBack{"AttachToNewVfs", attachToNewVfs},
        PlanToRollBack{"AttachToNewVfsOfTheHostDriver", attachToNewVfsOfTheHostDriver},
        PlanToRollBack{"AttachWithVectors", attachWithVectors},
        PlanToRollBack{"AttachFunction", attachFunction}, PlanToRollBack{"AttachLive", attachLive},
        PlanToRollBack{"AttachChanged", attachChanged},
        PlanToRollBack{"AttachRenamed", attachRenamed}, PlanToRollBack{"Detach", detachConfigured},
        PlanToRollBack{"DetachRunning", detachRunning}, PlanToRollBack{"Prepare", prepareUnchanged},
        PlanToRollBack{"PrepareAfterReboot", prepareAfterReboot},
        PlanToRollBack{"HostCount", planOtherCount}, PlanToRollBack{"HostMode", planOtherMode},
        PlanToRollBack{"HostLinks", otherLinks}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace vfpass::apply
