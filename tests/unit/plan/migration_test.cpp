#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake/fake_kernel.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/plan_hook.hpp"

// `migration: vfio`: what it needs of host and PF, and the driver that its VF gets.

namespace vfpass::plan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MigrationTest : public testing::Test {
 protected:
  MigrationTest() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    kernel.pfSettings[pf().address].eswitchMode = EswitchMode::switchdev;
    pf().vendor = 0x15b3;
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = "train0";
    MappedVf entry;
    entry.name = "rail0";
    entry.pf.netdev = "ens1f0np0";
    entry.index = 1;
    entry.migrates = true;
    entry.place = {"m.yaml", 4, 5};
    input.mapping.vfs = {entry};
    input.placements = {{{0, 1, 0, 0}, RootPort{1, {0, 0, 2, 0}, false}, {}}};
    input.generation = 7;
    input.hasMigrationDriver = true;
    input.kernel = Version{6, 12};
    input.versions = {Version{11, 3}, Version{10, 0}};
  }

  PhysicalFunction& pf() { return kernel.pfs.begin()->second; }
  AttachDecision decide() {
    input.inventory = kernel.inventory();
    return planAttach(input);
  }
  std::vector<std::string> objections() {
    std::vector<std::string> lines;
    for (const auto& each : decide().objections) {
      EXPECT_FALSE(each.remedy.empty());
      lines.push_back(each.message);
    }
    return lines;
  }

  fake::FakeKernel kernel;
  AttachInput input;
};

std::vector<BindDriver> migrationBindings(const std::vector<Step>& steps) {
  std::vector<BindDriver> found;
  for (const auto& step : steps) {
    if (const auto* bind = std::get_if<BindDriver>(&step.action)) {
      found.push_back(*bind);
    }
  }
  return found;
}

TEST_F(MigrationTest, BindsTheDriverThatMigrates) {
  pf().vfs[1].driver = "vfio-pci";
  const auto decision = decide();
  ASSERT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(vfioDriverOf(decision.leases[0]), "mlx5_vfio_pci");
  const BindDriver bound{pf().vfs[1].address, "mlx5_vfio_pci", "mlx5_vfio_pci"};
  EXPECT_THAT(migrationBindings(decision.plan.steps), ElementsAre(bound));
  const auto& leases = decision.leases;
  EXPECT_THAT(
      migrationBindings(
          planPrepare(input.domain, "train0", leases, leases, input.inventory, "boot").plan.steps),
      ElementsAre(bound));
  pf().vfs[1].driver = "mlx5_vfio_pci";
  EXPECT_THAT(migrationBindings(
                  planPrepare(input.domain, "train0", leases, leases, kernel.inventory(), "boot")
                      .plan.steps),
              IsEmpty());
}

TEST_F(MigrationTest, ResetsTheVfBetweenTwoRunsAndRestoresItsDriver) {
  pf().vfs[1].driver = "mlx5_core";
  auto leases = decide().leases;
  ASSERT_EQ(leases.size(), 1U);
  leases[0].state = LeaseState::running;
  pf().vfs[1].driver = "mlx5_vfio_pci";
  const auto isReset = [](const Step& step) {
    return std::holds_alternative<ResetFunction>(step.action);
  };
  const auto release = planRelease(input.domain, "train0", leases, kernel.inventory(), "boot");
  EXPECT_TRUE(std::ranges::any_of(release.steps, isReset));
  const auto restore = planRestore(leases, leases, kernel.inventory(), {}).steps;
  EXPECT_TRUE(std::ranges::any_of(restore, isReset));
  EXPECT_THAT(migrationBindings(restore),
              ElementsAre(BindDriver{pf().vfs[1].address, "mlx5_core", ""}));
}

TEST_F(MigrationTest, LeavesOtherVfsOnVfioPci) {
  input.mapping.vfs[0].migrates = false;
  input.hasMigrationDriver = false;
  input.kernel = Version{5, 10};
  EXPECT_THAT(migrationBindings(decide().plan.steps),
              ElementsAre(BindDriver{pf().vfs[1].address, "vfio-pci", "vfio-pci"}));
}

TEST_F(MigrationTest, RefusesAHostThatCannot) {
  input.hasMigrationDriver = false;
  EXPECT_THAT(objections(),
              ElementsAre("`migration: vfio` needs the VFIO driver mlx5_vfio_pci, and the running "
                          "kernel (Linux 6.12) has no module for it"));
  input.hasMigrationDriver = true;
  input.kernel = Version{6, 1};
  EXPECT_THAT(objections(),
              ElementsAre("`migration: vfio` needs Linux 6.2 or newer, which makes a VF migratable "
                          "with devlink; this host has Linux 6.1"));
  input.kernel = Version{6, 2};
  input.versions = {Version{9, 10}, Version{8, 0}};
  EXPECT_THAT(
      objections(),
      ElementsAre("`migration: vfio` needs libvirt 10.0 or newer, which knows <driver "
                  "model='mlx5_vfio_pci'/>; this host has libvirt 9.10",
                  "`migration: vfio` needs QEMU 8.1 or newer, which migrates VFIO devices; this "
                  "host has QEMU 8.0"));
  input.versions = {Version{10, 0}, Version{8, 1}};
  EXPECT_THAT(objections(), IsEmpty());
}

TEST_F(MigrationTest, DoesNotRefuseWhatIsUnknown) {
  input.hasMigrationDriver.reset();
  input.kernel.reset();
  input.versions = {};
  kernel.pfSettings[pf().address].eswitchMode.reset();
  EXPECT_THAT(objections(), IsEmpty());
}

TEST_F(MigrationTest, RefusesAPfThatCannot) {
  kernel.pfSettings[pf().address].eswitchMode = EswitchMode::legacy;
  EXPECT_THAT(objections(),
              ElementsAre("m.yaml:4:5: rail0 has `migration: vfio`, but PF 0000:01:00.0 is in "
                          "legacy mode, in which no VF can be made migratable"));
  kernel.pfSettings[pf().address].eswitchMode = EswitchMode::switchdev;
  pf().linkLayer = LinkLayer::infiniband;
  EXPECT_THAT(objections(), Contains(HasSubstr("PF 0000:01:00.0 is InfiniBand")));
  pf().linkLayer = LinkLayer::ethernet;
  pf().vendor = 0x8086;
  pf().driver = "ice";
  EXPECT_THAT(objections(), Contains(HasSubstr("is not a NIC of mlx5_core")));
}

TEST_F(MigrationTest, RefusesAFirmwareThatSavesNoVf) {
  noteMigratable(pf(), {{0, std::nullopt}, {1, std::nullopt}});
  EXPECT_THAT(objections(),
              ElementsAre("m.yaml:4:5: rail0 has `migration: vfio`, but PF 0000:01:00.0 cannot "
                          "save the state of a VF: devlink shows no `migratable` at the ports of "
                          "its VFs"));
  noteMigratable(pf(), {{1, false}});
  EXPECT_THAT(objections(), IsEmpty());
  noteMigratable(pf(), {});
  EXPECT_THAT(objections(), IsEmpty()) << "without ports it is unknown";
}

TEST_F(MigrationTest, BindsAVfAgainThatIsNotMigratable) {
  VirtualFunction& vf = pf().vfs[1];
  vf.driver = vf.driverOverride = "mlx5_vfio_pci";
  vf.migratable = false;
  const BindDriver bound{vf.address, "mlx5_vfio_pci", "mlx5_vfio_pci"};
  const BindDriver found{vf.address, "mlx5_vfio_pci", "mlx5_vfio_pci", false};
  const auto decision = decide();
  EXPECT_THAT(migrationBindings(decision.plan.steps), ElementsAre(bound));
  EXPECT_THAT(decision.plan.steps,
              Contains(testing::AllOf(testing::Field(&Step::undo, Contains(Action(found))),
                                      testing::Field(&Step::reason, HasSubstr("not migratable")))));
  const auto& leases = decision.leases;
  const auto prepared = [&] {
    const auto plan =
        planPrepare(input.domain, "train0", leases, leases, kernel.inventory(), "boot").plan;
    return migrationBindings(plan.steps);
  };
  EXPECT_THAT(prepared(), ElementsAre(bound));
  kernel.bindDriver(bound);
  EXPECT_EQ(vf.migratable, true);
  EXPECT_THAT(prepared(), IsEmpty());
  const auto restore = planRestore(leases, leases, kernel.inventory(), {}).steps;
  EXPECT_THAT(migrationBindings(restore), ElementsAre(found));
}

TEST_F(MigrationTest, LeavesAVfMigratableThatWasSoBefore) {
  pf().vfs[1].migratable = true;
  const auto leases = decide().leases;
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].original.migratable, true);
  pf().vfs[1].driver = "mlx5_vfio_pci";
  const auto restore = planRestore(leases, leases, kernel.inventory(), {}).steps;
  EXPECT_THAT(migrationBindings(restore),
              ElementsAre(BindDriver{pf().vfs[1].address, "mlx5_core", "", true}));
}

TEST_F(MigrationTest, RecordsTheFirmwareOfAnEntryThatMigratesFromNowOn) {
  pf().vfs[1].migratable = true;
  input.mapping.vfs[0].migrates = false;
  input.leases = decide().leases;
  ASSERT_EQ(input.leases.size(), 1U);
  EXPECT_EQ(input.leases[0].original.migratable, std::nullopt);
  input.mapping.vfs[0].migrates = true;
  EXPECT_EQ(decide().leases.at(0).original.migratable, true);
}

TEST_F(MigrationTest, LeavesTheVfOfARunningGuest) {
  pf().vfs[1].driver = "mlx5_vfio_pci";
  pf().vfs[1].migratable = false;
  input.leases = decide().leases;
  input.mapping.vfs[0].settings.rate = Rate{0, 1000};
  EXPECT_THAT(migrationBindings(decide().plan.steps), testing::SizeIs(1));
  input.active = input.scope.live = true;
  input.plugged = {"rail0"};
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_FALSE(decision.plan.steps.empty());
  EXPECT_THAT(migrationBindings(decision.plan.steps), IsEmpty());
}

TEST_F(MigrationTest, ReplacesTheDriverOnlyOfAStoppedGuest) {
  input.mapping.vfs[0].migrates = false;
  input.leases = decide().leases;
  ASSERT_EQ(input.leases.size(), 1U);
  input.mapping.vfs[0].migrates = true;
  EXPECT_THAT(mappingDifferences(input, decide().leases),
              ElementsAre(HasSubstr("driver mlx5_vfio_pci instead of vfio-pci")));
  input.active = true;
  input.plugged = {"rail0"};
  EXPECT_THAT(objections(), Contains(HasSubstr("cannot replace its device")));
}

}  // namespace
}  // namespace vfpass::plan
