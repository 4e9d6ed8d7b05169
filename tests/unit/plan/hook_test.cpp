#include "vfpass/plan/plan_hook.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"
#include "vfpass/plan/plan_detach.hpp"

namespace vfpass::plan {
namespace {

using testing::HasSubstr;

class HookTest : public testing::Test {
 protected:
  HookTest() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    lease.domain = uuid;
    lease.domainName = "a";
    lease.entry = "rail0";
    lease.pf = *parsePciAddress("0000:01:00.0");
    lease.pfPath = pf().path;
    vfOf(lease).index = 2;
    lease.device = pf().vfs[2].address;
    vfOf(lease).count = 4;
    vfOf(lease).settings.mac = parseMacAddress("02:00:00:00:00:01");
    lease.generation = 3;
  }

  PhysicalFunction& pf() { return kernel.pfs.begin()->second; }
  PrepareDecision prepare(const std::vector<Lease>& known) {
    return planPrepare(uuid, "a", {lease}, known, kernel.inventory(), "boot");
  }
  Objection objection(const std::vector<Lease>& known) {
    const auto decision = prepare(known);
    EXPECT_EQ(decision.objections.size(), 1U);
    EXPECT_TRUE(decision.plan.steps.empty());
    return decision.objections.empty() ? Objection{} : decision.objections[0];
  }

  Uuid uuid = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
  fake::FakeKernel kernel;
  Lease lease;
};

TEST_F(HookTest, PrepareAppliesLeaseOfDatabase) {
  const auto decision = prepare({lease});
  ASSERT_TRUE(decision.objections.empty());
  ASSERT_EQ(decision.plan.steps.size(), 3U);
  const auto& recorded = std::get<RecordLease>(decision.plan.steps[0].action).lease;
  EXPECT_EQ(recorded.state, LeaseState::starting);
  EXPECT_EQ(recorded.bootId, "boot");
}

TEST_F(HookTest, RefusesMetadataWithoutLeaseInDatabase) {
  EXPECT_THAT(objection({}).message, HasSubstr("has no lease rail0"));
}

TEST_F(HookTest, RefusesEditedMetadata) {
  Lease attached = lease;
  vfOf(lease).settings.vlan = Vlan{200, 0, VlanProtocol::dot1q};
  vfOf(lease).settings.trust = true;
  EXPECT_THAT(objection({attached}).message,
              HasSubstr("differs from the attached lease: vlan, trust"));
}

TEST_F(HookTest, CreatesVfsAfterReboot) {
  pf().vfs.clear();
  const auto decision = prepare({lease});
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_EQ(std::get<CreateVfs>(decision.plan.steps.at(1).action).count, 4U);
}

// The count cannot grow for the domains that start later.
TEST_F(HookTest, CreatesVfsOfAllLeasesAfterReboot) {
  pf().vfs.clear();
  Lease other = lease;
  other.domain = *parseUuid("ffffffff-1111-4222-8333-944455566677");
  vfOf(other).index = 5;
  vfOf(other).count = 6;
  EXPECT_EQ(std::get<CreateVfs>(prepare({lease, other}).plan.steps.at(1).action).count, 6U);
  other.pf = *parsePciAddress("0000:02:00.0");
  EXPECT_EQ(std::get<CreateVfs>(prepare({lease, other}).plan.steps.at(1).action).count, 4U);
}

TEST_F(HookTest, CreatesVfsThatDisruptTheHostOnlyIfLeaseAllows) {
  pf().uppers = {"bond0"};
  EXPECT_TRUE(prepare({lease}).objections.empty()) << "its VFs exist";
  pf().vfs.clear();
  pf().lag = {"bond0", "rocep1s0", pf().address};
  EXPECT_THAT(objection({lease}).message, HasSubstr("the RoCE LAG of bond0 is disabled"));
  EXPECT_EQ(objection({lease}).code, ExitCode::refused);
  lease.allow = {Allowance::disruption};
  const auto decision = prepare({lease});
  ASSERT_TRUE(decision.objections.empty());
  EXPECT_TRUE(decision.plan.steps.at(1).disrupts);
  EXPECT_EQ(std::get<CreateVfs>(decision.plan.steps.at(1).action).lagDevicePf, pf().address);
}

TEST_F(HookTest, ReleaseLeavesMacThatVfKeeps) {
  lease.state = LeaseState::running;
  vfOf(lease).settings = {};
  vfOf(lease).settings.trust = false;
  pf().vfs[2].settings.mac = parseMacAddress("02:00:00:00:00:01");
  const auto scrubbed = [&] {
    std::vector<VfSettings> found;
    for (const Step& step : planRelease(uuid, "a", {lease}, kernel.inventory(), "boot").steps) {
      if (const auto* configure = std::get_if<ConfigureVfs>(&step.action)) {
        found.push_back(configure->vfs.at(0).settings);
      }
    }
    return found;
  };
  ASSERT_EQ(scrubbed().size(), 1U);
  EXPECT_FALSE(scrubbed()[0].mac);
  EXPECT_EQ(scrubbed()[0].trust, false);
  pf().vfs[2].settings = {};
  vfOf(lease).settings = {};
  EXPECT_TRUE(scrubbed().empty()) << "a PF that lets the host set nothing";
}

// Before any VF is created: ib_ipoib may be missing only since the reboot.
TEST_F(HookTest, RefusesPfWithoutIpoibNetdev) {
  pf().vfs.clear();
  pf().netdevs.clear();
  pf().rdma = {{"mlx5_0"}};
  pf().linkLayer = LinkLayer::infiniband;
  EXPECT_THAT(objection({lease}).message, HasSubstr("PF 0000:01:00.0 has no IPoIB netdev"));
  EXPECT_THAT(objection({lease}).remedy, HasSubstr("modprobe ib_ipoib"));
  pf().hasVfFiles = true;
  EXPECT_TRUE(prepare({lease}).objections.empty());
}

TEST_F(HookTest, RefusesVfLeasedToAnotherDomain) {
  Lease other = lease;
  other.domain = *parseUuid("ffffffff-1111-4222-8333-944455566677");
  other.domainName = "rightful";
  EXPECT_THAT(objection({other, lease}).message, HasSubstr("leased to domain rightful"));
}

TEST_F(HookTest, RefusesMetadataCopiedFromAnotherDomain) {
  lease.domain = *parseUuid("ffffffff-1111-4222-8333-944455566677");
  EXPECT_THAT(objection({}).message, HasSubstr("the XML was copied"));
}

TEST_F(HookTest, RefusesXmlOlderThanLease) {
  Lease newer = lease;
  newer.generation = 4;
  EXPECT_THAT(objection({newer}).message, HasSubstr("older version"));
}

TEST_F(HookTest, RefusesVfInUseSharedOrMoved) {
  pf().vfs[2].vfioInUse = true;
  EXPECT_THAT(objection({lease}).message, HasSubstr("open through VFIO"));
  pf().vfs[2].vfioInUse = false;
  pf().vfs[2].groupPeers = {{pf().address, 0x020000, "mlx5_core"}};
  EXPECT_THAT(objection({lease}).message, HasSubstr("shares IOMMU group"));
  pf().vfs[2].groupPeers.clear();
  pf().path = "elsewhere";
  EXPECT_THAT(objection({lease}).message, HasSubstr("has PCI path elsewhere"));
}

TEST_F(HookTest, RefusesMissingPf) {
  kernel.pfs.clear();
  EXPECT_THAT(objection({lease}).message, HasSubstr("does not exist"));
}

TEST_F(HookTest, ReleaseScrubsOnlyStartedLeasesOfDomain) {
  Lease reserved = lease;
  Lease foreign = lease;
  foreign.domain = *parseUuid("ffffffff-1111-4222-8333-944455566677");
  foreign.state = LeaseState::running;
  EXPECT_TRUE(
      planRelease(uuid, "a", {reserved, foreign}, kernel.inventory(), "boot").steps.empty());

  Lease running = lease;
  running.state = LeaseState::running;
  pf().vfs[2].driver = "vfio-pci";
  const auto plan = planRelease(uuid, "a", {running, foreign}, kernel.inventory(), "boot");
  ASSERT_EQ(plan.steps.size(), 3U);
  EXPECT_EQ(std::get<ResetFunction>(plan.steps[0].action).function, lease.device);
  const auto& change = std::get<ConfigureVfs>(plan.steps[1].action).vfs.at(0);
  EXPECT_TRUE(change.settings.mac->isZero());
  EXPECT_TRUE(change.required.empty());
  EXPECT_EQ(std::get<RecordLease>(plan.steps[2].action).lease.state, LeaseState::reserved);
}

TEST_F(HookTest, DetachRemovesVfsOnlyWithLastLease) {
  lease.original.created = true;
  const auto removes = [&](const std::vector<Lease>& all) {
    for (const auto& step : planRestore({lease}, all, kernel.inventory(), {}).steps) {
      if (std::holds_alternative<RemoveVfs>(step.action)) {
        return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(removes({lease}));
  Lease other = lease;
  other.entry = "rail1";
  vfOf(other).index = 1;
  EXPECT_FALSE(removes({lease, other})) << "another lease needs the PF's VFs";
  pf().vfs[0].driver = "vfio-pci";
  EXPECT_FALSE(removes({lease})) << "another VF is on vfio-pci";
  pf().vfs[0].driver = "mlx5_core";
  pf().vfs[0].netdevs = {{"v0", 5, true, false}};
  EXPECT_FALSE(removes({lease})) << "a netdev is up on the host";
  pf().vfs[0].netdevs.clear();
  lease.original.created = false;
  EXPECT_FALSE(removes({lease})) << "vfpass did not create them";
}

}  // namespace
}  // namespace vfpass::plan
