#include "vfpass/plan/plan_soft_roce.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* thisBoot = "boot-1";

std::vector<SoftRocePolicy> wanting(const std::vector<std::pair<std::string, std::string>>& links) {
  std::vector<SoftRocePolicy> policy;
  for (const auto& [name, netdev] : links) {
    policy.push_back({name, netdev, {"host.yaml", 3, 5}});
  }
  return policy;
}

RdmaLink rxe(const std::string& name, const std::string& netdev, std::uint32_t number = 1) {
  return {name, true, netdev, number};
}

SoftRoceRecord made(const std::string& name, const std::string& netdev,
                    std::optional<std::uint32_t> number = 1) {
  return {name, netdev, number, thisBoot};
}

SoftRoceDecision only(const std::vector<SoftRoceDecision>& decisions) {
  EXPECT_EQ(decisions.size(), 1U);
  return decisions.at(0);
}

void expectNothing(const SoftRoceDecision& decision) {
  EXPECT_FALSE(decision.create);
  EXPECT_FALSE(decision.remove);
  EXPECT_FALSE(decision.objection.has_value());
}

TEST(SoftRoce, CreatesMissingLink) {
  const auto decision = only(decideSoftRoce(wanting({{"rxe0", "eth0"}}), {}, {}, thisBoot));
  EXPECT_TRUE(decision.create);
  EXPECT_FALSE(decision.remove);
}

TEST(SoftRoce, KeepsMatchingLinkOfAnyCreator) {
  for (const auto& records : {std::vector<SoftRoceRecord>{}, {made("rxe0", "eth0")}}) {
    const auto decision =
        only(decideSoftRoce(wanting({{"rxe0", "eth0"}}), {rxe("rxe0", "eth0")}, records, thisBoot));
    expectNothing(decision);
    EXPECT_EQ(decision.ours, !records.empty());
  }
}

TEST(SoftRoce, RemovesOnlyOwnLinks) {
  const auto ours =
      only(decideSoftRoce({}, {rxe("rxe0", "eth0")}, {made("rxe0", "eth0")}, thisBoot));
  EXPECT_TRUE(ours.remove);
  EXPECT_FALSE(ours.create);
  expectNothing(only(decideSoftRoce({}, {rxe("rxe0", "eth0")}, {}, thisBoot)));
}

TEST(SoftRoce, IgnoresRecordOfAnotherLink) {
  SoftRoceRecord earlierBoot = made("rxe0", "eth0");
  earlierBoot.bootId = "boot-0";
  for (const auto& record :
       {earlierBoot, made("rxe0", "eth0", 2), made("rxe0", "eth1"), made("rxe1", "eth0")}) {
    for (const auto& decision : decideSoftRoce({}, {rxe("rxe0", "eth0")}, {record}, thisBoot)) {
      EXPECT_FALSE(decision.ours);
      EXPECT_FALSE(decision.remove);
      EXPECT_EQ(decision.forget, decision.name == record.name);
    }
  }
}

TEST(SoftRoce, AcceptsRecordWithoutNumber) {
  EXPECT_TRUE(only(decideSoftRoce({}, {rxe("rxe0", "eth0", 9)},
                                  {made("rxe0", "eth0", std::nullopt)}, thisBoot))
                  .remove);
}

TEST(SoftRoce, MovesOwnLinkToAnotherNetdev) {
  const auto decision = only(decideSoftRoce(wanting({{"rxe0", "eth1"}}), {rxe("rxe0", "eth0")},
                                            {made("rxe0", "eth0")}, thisBoot));
  EXPECT_TRUE(decision.remove);
  EXPECT_TRUE(decision.create);
}

TEST(SoftRoce, RefusesToMoveForeignLink) {
  const auto decision =
      only(decideSoftRoce(wanting({{"rxe0", "eth1"}}), {rxe("rxe0", "eth0")}, {}, thisBoot));
  ASSERT_TRUE(decision.objection.has_value());
  EXPECT_EQ(decision.objection->code, ExitCode::refused);
  EXPECT_THAT(decision.objection->message, HasSubstr("exists on netdev eth0 instead of eth1"));
  EXPECT_FALSE(decision.remove);
  EXPECT_FALSE(decision.create);
}

TEST(SoftRoce, RefusesNameOfAnotherDriversDevice) {
  const auto decision =
      only(decideSoftRoce(wanting({{"mlx5_0", "eth0"}}), {{"mlx5_0", false, "", 0}}, {}, thisBoot));
  ASSERT_TRUE(decision.objection.has_value());
  EXPECT_THAT(decision.objection->message, HasSubstr("is not a SoftRoCE link"));
}

TEST(SoftRoce, RefusesNetdevOfForeignLink) {
  const auto decisions =
      decideSoftRoce(wanting({{"rxe0", "eth0"}}), {rxe("other0", "eth0")}, {}, thisBoot);
  ASSERT_EQ(decisions.size(), 2U);
  expectNothing(decisions[0]);
  ASSERT_TRUE(decisions[1].objection.has_value());
  EXPECT_THAT(decisions[1].objection->remedy, HasSubstr("rdma link delete other0"));
  EXPECT_FALSE(decisions[1].create);
}

TEST(SoftRoce, ReusesNetdevOfRemovedOwnLink) {
  const auto decisions =
      decideSoftRoce(wanting({{"rxe0", "eth1"}, {"rxe1", "eth0"}}),
                     {rxe("rxe0", "eth0", 1), rxe("rxe1", "eth1", 2)},
                     {made("rxe0", "eth0", 1), made("rxe1", "eth1", 2)}, thisBoot);
  for (const auto& decision : decisions) {
    EXPECT_TRUE(decision.remove && decision.create);
    EXPECT_FALSE(decision.objection.has_value());
  }
}

TEST(SoftRoce, IgnoresHardwareDevices) {
  EXPECT_THAT(decideSoftRoce({}, {{"mlx5_0", false, "", 0}}, {}, thisBoot), IsEmpty());
}

SoftRoceInput inputOf(const std::vector<std::pair<std::string, std::string>>& wanted,
                      const std::vector<RdmaLink>& found,
                      const std::vector<SoftRoceRecord>& records) {
  SoftRoceInput input;
  input.policy = wanting(wanted);
  input.found = found;
  input.records = records;
  input.bootId = thisBoot;
  return input;
}

std::vector<std::string> stepsOf(const SoftRoceInput& input) {
  std::vector<std::string> lines;
  for (const auto& step : planSoftRoce(input).plan.steps) {
    lines.push_back(describe(step.action));
  }
  return lines;
}

TEST(SoftRocePlan, RemovesBeforeCreatingWithInverseForEachStep) {
  const auto plan =
      planSoftRoce(inputOf({{"rxe0", "eth1"}}, {rxe("rxe0", "eth0", 4)}, {made("rxe0", "eth0", 4)}))
          .plan;
  EXPECT_EQ(plan.kind, PlanKind::host);
  EXPECT_EQ(describeWork(plan), "host apply of SoftRoCE links");
  ASSERT_EQ(plan.steps.size(), 2U);
  EXPECT_EQ(plan.steps[0].action, Action(RemoveSoftRoceLink{"rxe0", "eth0", 4}));
  EXPECT_EQ(plan.steps[0].undo, std::vector<Action>{(AddSoftRoceLink{"rxe0", "eth0"})});
  EXPECT_EQ(plan.steps[1].action, Action(AddSoftRoceLink{"rxe0", "eth1"}));
  EXPECT_EQ(plan.steps[1].undo, std::vector<Action>{(RemoveSoftRoceLink{"rxe0", "eth1"})});
}

TEST(SoftRocePlan, RefusesLinkInUseAndLinkThatNeedsItsNetdev) {
  auto input = inputOf({{"rxe1", "eth0"}, {"rxe2", "eth2"}}, {rxe("rxe0", "eth0", 4)},
                       {made("rxe0", "eth0", 4)});
  input.users["rxe0"] = {"process 7 (ib_write_bw)"};
  const auto planned = planSoftRoce(input);
  ASSERT_EQ(planned.decisions.size(), 3U);
  EXPECT_EQ(planned.decisions[0].objection.value().code, ExitCode::refused);
  EXPECT_THAT(planned.decisions[0].objection->message, HasSubstr("process 7 (ib_write_bw)"));
  EXPECT_THAT(planned.decisions[1].objection.value().message, HasSubstr("which is kept"));
  EXPECT_THAT(stepsOf(input), testing::ElementsAre("create SoftRoCE link rxe2 on netdev eth2"));
}

TEST(SoftRocePlan, KeepsOldLinkIfNewNetdevCannotCarryOne) {
  auto input = inputOf({{"rxe0", "gone0"}}, {rxe("rxe0", "eth0", 4)}, {made("rxe0", "eth0", 4)});
  input.netdevFaults["gone0"] = "no netdev gone0";
  const auto planned = planSoftRoce(input);
  EXPECT_EQ(planned.decisions[0].objection.value().code, ExitCode::badInput);
  EXPECT_THAT(planned.plan.steps, IsEmpty());
}

TEST(SoftRocePlan, DropsOutdatedRecord) {
  auto input = inputOf({}, {}, {made("rxe0", "eth0", 4)});
  EXPECT_THAT(stepsOf(input), testing::ElementsAre("delete the record of SoftRoCE link rxe0"));
  input.policy = wanting({{"rxe0", "eth0"}});  // its creation replaces the record
  EXPECT_THAT(stepsOf(input), testing::ElementsAre("create SoftRoCE link rxe0 on netdev eth0"));
}

TEST(SoftRocePlan, NotesNetdevWithHardwareRdma) {
  auto input = inputOf({{"rxe0", "eth0"}}, {}, {});
  input.hardwareNetdevs = {"eth0"};
  EXPECT_THAT(planSoftRoce(input).plan.notes, testing::ElementsAre(HasSubstr("has hardware RDMA")));
}

}  // namespace
}  // namespace vfpass::plan
