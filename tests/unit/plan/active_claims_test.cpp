#include "vfpass/plan/judge_holders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake/fake_kernel.hpp"

namespace vfpass::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ActiveClaimsTest : public testing::Test {
 protected:
  ActiveClaimsTest() {
    const auto& pf = kernel.addPf("0000:01:00.0", "ens1f0np0", 8, 4);
    plan.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    plan.kind = PlanKind::detach;
    plan.steps = {{ConfigureVfs{pf.address, {{2, {}, {}}}}, {}, {}, false}};
    other.uuid = *parseUuid("0f5e9a3c-1111-4222-8333-000000000000");
    other.name = "c";
    other.active = true;
    other.liveClaims = {{pf.vfs[2].address, "", {}}};
  }

  std::vector<Objection> objections() {
    return objectToActiveClaims(plan, kernel.inventory(), {other});
  }

  fake::FakeKernel kernel;
  Plan plan;
  DomainSummary other;
};

TEST_F(ActiveClaimsTest, NamesRunningDomainWithTouchedDevice) {
  const auto found = objections();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].code, ExitCode::refused);
  EXPECT_THAT(found[0].message, HasSubstr("0000:01:00.3 is in use by running domain c"));
}

TEST_F(ActiveClaimsTest, IgnoresStoppedDomainsOwnDomainAndOtherDevices) {
  other.active = false;
  EXPECT_THAT(objections(), IsEmpty());
  other.active = true;
  plan.steps[0].action = ResetFunction{*parsePciAddress("0000:01:00.1")};
  EXPECT_THAT(objections(), IsEmpty());
  plan.steps[0].action = ResetFunction{*parsePciAddress("0000:01:00.3")};
  EXPECT_THAT(objections(), SizeIs(1));
  other.uuid = plan.domain;
  EXPECT_THAT(objections(), IsEmpty());
}

}  // namespace
}  // namespace vfpass::plan
