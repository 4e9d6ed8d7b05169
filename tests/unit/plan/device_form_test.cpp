#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device_steps.hpp"
#include "fake/fake_kernel.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/plan_hook.hpp"

// `managed: yes` and `interface: true`: vfpass leaves libvirt's part of the work to libvirt.

namespace vfpass::plan {
namespace {

using testing::HasSubstr;

class FormTest : public testing::Test {
 protected:
  FormTest() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = "train0";
    MappedVf entry;
    entry.name = "rail0";
    entry.pf.netdev = "ens1f0np0";
    entry.index = 1;
    entry.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    entry.settings.spoofCheck = true;
    input.mapping.vfs = {entry};
    input.placements = {{{0, 1, 0, 0}, RootPort{1, {0, 0, 2, 0}, false}, {}}};
    input.generation = 7;
  }

  PhysicalFunction& pf() { return kernel.pfs.begin()->second; }
  MappedVf& entry() { return input.mapping.vfs[0]; }
  AttachDecision decide() {
    input.inventory = kernel.inventory();
    return planAttach(input);
  }
  Objection objection() {
    const auto decision = decide();
    EXPECT_EQ(decision.objections.size(), 1U);
    return decision.objections.empty() ? Objection{} : decision.objections[0];
  }
  void makeInfiniband() {
    pf().linkLayer = LinkLayer::infiniband;
    for (auto& vf : pf().vfs) {
      vf.settings = {};
    }
    entry().settings = {};
    entry().managed = true;
  }

  fake::FakeKernel kernel;
  AttachInput input;
};

template <typename ActionType>
std::vector<ActionType> actions(const std::vector<Step>& steps) {
  std::vector<ActionType> found;
  for (const auto& step : steps) {
    if (const auto* action = std::get_if<ActionType>(&step.action)) {
      found.push_back(*action);
    }
  }
  return found;
}

TEST_F(FormTest, ManagedVfIsNotBoundByVfpass) {
  entry().managed = true;
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(actions<ConfigureVfs>(decision.plan.steps).size(), 1U);
  EXPECT_TRUE(actions<BindDriver>(decision.plan.steps).empty());
  const auto leases = decision.leases;
  const auto prepare = planPrepare(input.domain, "train0", leases, leases, input.inventory, "boot");
  EXPECT_TRUE(actions<BindDriver>(prepare.plan.steps).empty());
  pf().vfs[1].driver = "mlx5_core";
  EXPECT_TRUE(
      actions<BindDriver>(planRestore(leases, leases, kernel.inventory(), {}).steps).empty());
}

TEST_F(FormTest, RollbackRestoresValuesBeforeBindingHostDriver) {
  pf().vfs[1].driver = "mlx5_core";
  pf().vfs[1].settings.mac = parseMacAddress("02:aa:00:00:00:01");
  const auto decision = decide();
  const auto leases = decision.leases;
  const auto prepare = planPrepare(input.domain, "train0", leases, leases, input.inventory, "boot");
  for (const auto& steps : {decision.plan.steps, prepare.plan.steps}) {
    for (const auto& step : steps) {
      if (std::holds_alternative<BindDriver>(step.action)) {
        ASSERT_EQ(step.undo.size(), 2U);
        const auto& configure = std::get<ConfigureVfs>(step.undo[0]);
        EXPECT_EQ(configure.vfs.at(0).settings.mac, pf().vfs[1].settings.mac);
        EXPECT_EQ(std::get<BindDriver>(step.undo[1]).driver, "mlx5_core");
      }
    }
  }
  EXPECT_EQ(actions<BindDriver>(decision.plan.steps).size(), 1U);
}

TEST_F(FormTest, RefusesManagedVfWhenProbingIsOff) {
  entry().managed = true;
  pf().probesVfs = false;
  const auto refused = objection();
  EXPECT_EQ(refused.code, ExitCode::refused);
  EXPECT_THAT(refused.message, HasSubstr("probing of VFs is off on PF 0000:01:00.0"));
  EXPECT_THAT(refused.remedy, HasSubstr("echo 1 >"));
  entry().managed = false;
  EXPECT_TRUE(decide().objections.empty());
}

TEST_F(FormTest, RefusesInterfaceFormWhenPfIsDown) {
  entry().interfaceForm = true;
  pf().netdevs[0].up = false;
  const auto refused = objection();
  EXPECT_EQ(refused.code, ExitCode::refused);
  EXPECT_THAT(refused.message, HasSubstr("ens1f0np0 is down"));
  pf().netdevs[0].up = true;
  EXPECT_TRUE(decide().objections.empty());
}

TEST_F(FormTest, LeavesMacAndVlanOfInterfaceToLibvirt) {
  entry().interfaceForm = true;
  pf().netdevs[0].up = true;
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  const auto expectUntouched = [](const std::vector<Step>& steps) {
    const auto found = actions<ConfigureVfs>(steps);
    ASSERT_EQ(found.size(), 1U);
    ASSERT_EQ(found[0].vfs.size(), 1U);
    EXPECT_FALSE(found[0].vfs.at(0).settings.mac);
    EXPECT_FALSE(found[0].vfs.at(0).settings.vlan);
    EXPECT_TRUE(found[0].vfs.at(0).settings.spoofCheck);
  };
  expectUntouched(decision.plan.steps);
  auto leases = decision.leases;
  EXPECT_TRUE(vfOf(leases[0]).settings.mac) << "the XML carries it";
  expectUntouched(
      planPrepare(input.domain, "train0", leases, leases, input.inventory, "boot").plan.steps);
  leases[0].state = LeaseState::running;
  expectUntouched(planRelease(input.domain, "train0", leases, kernel.inventory(), "boot").steps);
  expectUntouched(planRestore(leases, leases, kernel.inventory(), {}).steps);
}

TEST_F(FormTest, RebindsHostDriverAroundNewGuids) {
  makeInfiniband();
  pf().vfs[1].driver = "mlx5_core";
  const auto decision = decide();
  ASSERT_TRUE(decision.objections.empty());
  const auto& steps = decision.plan.steps;
  ASSERT_EQ(steps.size(), 5U);
  const BindDriver released{pf().vfs[1].address, "", ""};
  const BindDriver held{pf().vfs[1].address, "mlx5_core", ""};
  EXPECT_EQ(steps[1].action, Action(released));
  EXPECT_EQ(steps[1].undo, std::vector<Action>{held});
  EXPECT_TRUE(steps[1].disrupts);
  EXPECT_TRUE(std::holds_alternative<ConfigureVfs>(steps[2].action));
  EXPECT_EQ(steps[3].action, Action(held));
  EXPECT_EQ(steps[3].undo, std::vector<Action>{released});

  pf().vfs[1].settings = vfOf(decision.leases[0]).settings;
  const auto restore = planRestore(decision.leases, decision.leases, kernel.inventory(), {}).steps;
  EXPECT_EQ(actions<BindDriver>(restore), (std::vector<BindDriver>{released, held}));
}

TEST_F(FormTest, DoesNotRebindVfWithoutHostDriver) {
  makeInfiniband();
  for (const char* driver : {"", "vfio-pci"}) {
    pf().vfs[1].driver = driver;
    EXPECT_TRUE(actions<BindDriver>(decide().plan.steps).empty()) << driver;
  }
}

}  // namespace

}  // namespace vfpass::plan
