#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fake/fake_kernel.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/host_policy.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/plan_hook.hpp"

namespace vfpass::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const Uuid domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");

// A mapping with one VF of a PF that has four, and one GPU.
class QuarantineTest : public testing::Test {
 protected:
  QuarantineTest() {
    kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    kernel.addFunction("0000:3a:00.0", "nvidia");
    input.domain = domain;
    input.domainName = input.mapping.vm = "train0";
    MappedVf vf;
    vf.name = "rail0";
    vf.pf.netdev = "ens1f0np0";
    vf.place = {"train0.yaml", 4, 5};
    input.mapping.vfs = {vf};
    input.mapping.functions = {{"gpu0", gpu, {"train0.yaml", 8, 5}}};
    input.placements = {{{0, 1, 0, 0}, std::nullopt, {}}, {{0, 2, 0, 0}, std::nullopt, {}}};
    input.generation = 7;
    input.bootId = "boot";
  }

  PhysicalFunction& pf() { return kernel.pfs.begin()->second; }
  [[nodiscard]] PciAddress vf(unsigned index) { return pf().vfs.at(index).address; }
  void quarantine(const PciAddress& device) {
    quarantined.push_back({device, "its reset failed: EIO", "2026-11-28T12:00:00Z"});
  }
  Inventory inventory() {
    Inventory inventory = kernel.inventory();
    inventory.quarantined = quarantined;
    return inventory;
  }
  AttachDecision decide() {
    input.inventory = inventory();
    return planAttach(input);
  }
  void expectRefusal(const std::vector<Objection>& objections, const PciAddress& device,
                     const std::string& name = "") {
    ASSERT_THAT(objections, SizeIs(1));
    EXPECT_EQ(objections[0].code, ExitCode::refused);
    EXPECT_THAT(objections[0].message, AllOf(HasSubstr(name.empty() ? toString(device) : name),
                                             HasSubstr("quarantine since 2026-11-28T12:00"),
                                             HasSubstr("its reset failed: EIO")));
    EXPECT_THAT(objections[0].remedy,
                HasSubstr("`vfpass quarantine release " + toString(device) + "`"));
  }

  fake::FakeKernel kernel;
  AttachInput input;
  std::vector<QuarantinedDevice> quarantined;
  PciAddress gpu = *parsePciAddress("0000:3a:00.0");
};

TEST_F(QuarantineTest, AttachRefusesNamedVf) {
  input.mapping.vfs[0].index = 2;
  quarantine(vf(2));
  const auto decision = decide();
  expectRefusal(decision.objections, vf(2));
  EXPECT_THAT(decision.plan.steps, IsEmpty());
}

TEST_F(QuarantineTest, AttachRefusesFunction) {
  quarantine(gpu);
  expectRefusal(decide().objections, gpu);
}

TEST_F(QuarantineTest, AttachRefusesACardThatWasInAnotherSlot) {
  quarantine(*parsePciAddress("0000:99:00.0"));
  quarantined[0].identity = "10de:2330 function 0 serial 1";
  quarantined[0].elsewhere = {gpu};
  const auto objections = decide().objections;
  ASSERT_THAT(objections, SizeIs(1));
  EXPECT_THAT(objections[0].message,
              HasSubstr("0000:3a:00.0 has been in quarantine, then at 0000:99:00.0, since"));
  EXPECT_THAT(objections[0].remedy, HasSubstr("`vfpass quarantine release 0000:99:00.0`"));
}

TEST_F(QuarantineTest, AnotherCardAtTheAddressIsNamed) {
  quarantine(gpu);
  quarantined[0].identity = "10de:2330 function 0 serial 1";
  quarantined[0].found = "10de:2330 function 0 serial 2";
  expectRefusal(decide().objections, gpu, "another card is at its address now (10de:2330 function");
}

TEST_F(QuarantineTest, AttachRefusesVfOfPf) {
  quarantine(pf().address);
  expectRefusal(decide().objections, pf().address);
  input.mapping.vfs[0].index = 2;
  expectRefusal(decide().objections, pf().address);
}

TEST_F(QuarantineTest, AutomaticIndexTakesAnotherVf) {
  quarantine(vf(0));
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(vfOf(decision.leases.at(0)).index, 1U);
}

TEST_F(QuarantineTest, AutomaticIndexNamesTheReasonIfNoOtherVfIsFree) {
  for (unsigned index = 0; index < 4; ++index) {
    quarantine(vf(index));
  }
  const auto decision = decide();
  ASSERT_THAT(decision.objections, SizeIs(1));
  EXPECT_THAT(decision.objections[0].message, HasSubstr("in quarantine since"));
}

// The VFs do not exist yet: one more is created.
TEST_F(QuarantineTest, CountOfNewVfsLeavesOutThoseInQuarantine) {
  const PciAddress first = vf(0);
  pf().vfs.clear();
  quarantine(first);
  const auto decision = decide();
  EXPECT_THAT(decision.objections, IsEmpty());
  EXPECT_EQ(vfOf(decision.leases.at(0)).index, 1U);
  EXPECT_EQ(vfOf(decision.leases.at(0)).count, 2U);
}

TEST_F(QuarantineTest, StartIsRefusedAndDetachIsPossible) {
  auto leases = decide().leases;
  ASSERT_THAT(leases, SizeIs(2));
  quarantine(leases[0].device);
  const auto prepare = planPrepare(domain, "train0", leases, leases, inventory(), "boot");
  expectRefusal(prepare.objections, leases[0].device, "VF 0 of PF 0000:01:00.0");
  EXPECT_THAT(prepare.plan.steps, IsEmpty());
  const auto restored = planRestore(leases, leases, inventory(), {});
  EXPECT_TRUE(std::ranges::any_of(restored.steps, [](const Step& step) {
    return std::holds_alternative<DropLease>(step.action);
  }));
}

TEST_F(QuarantineTest, StartIsRefusedForThePfOfItsVf) {
  const auto leases = decide().leases;
  quarantine(pf().address);
  expectRefusal(planPrepare(domain, "train0", leases, leases, inventory(), "boot").objections,
                pf().address);
}

TEST_F(QuarantineTest, HostApplyKeepsTheVfsOfThePf) {
  HostInput host;
  host.pf = pf();
  for (auto& each : host.pf.vfs) {
    each.driver.clear();
    each.netdevs.clear();
  }
  host.settings = kernel.readPfSettings(pf().address);
  host.policy.place = {"host.yaml", 3, 5};
  host.policy.vfCount = 6;
  quarantine(vf(1));
  host.quarantined = quarantined;
  expectRefusal(planHost(host).objections, vf(1));
  host.policy.vfCount = 4;
  EXPECT_THAT(planHost(host).objections, IsEmpty());
  host.policy.vfCount = 6;
  quarantine(pf().address);
  host.quarantined = {quarantined.back()};
  expectRefusal(planHost(host).objections, pf().address);
}

}  // namespace
}  // namespace vfpass::plan
