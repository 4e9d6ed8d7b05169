#include "verification.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verification_steps.hpp"

namespace vfpass::commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OwnLimitsTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> limits() const { return ownLimits(request, policy); }

  VerifyRequest request;
  VerifyPolicy policy;
};

TEST_F(OwnLimitsTest, RunThatTheMappingAsksForHasNone) {
  EXPECT_THAT(limits(), IsEmpty());
  policy.minimumShare = 0.9;
  policy.gpu = true;
  EXPECT_THAT(limits(), IsEmpty());
  request.minimumShare = 0.9;
  request.gpu = true;
  request.wait = std::chrono::seconds(60);
  request.timeout = deadlines::verify * 2;
  request.tools = request.concurrent = false;
  EXPECT_THAT(limits(), IsEmpty());
}

TEST_F(OwnLimitsTest, NamesEveryOptionThatDemandsOrMeasuresSomethingElse) {
  policy.minimumShare = 0.5;
  request.minimumShare = 0.99;
  request.gpu = true;
  request.messageBytes = 64;
  request.iterations = 1;
  request.sizes = request.allPairs = true;
  request.relaxedOrdering = verify::RelaxedOrdering::off;
  request.timeout = std::chrono::seconds(10);
  EXPECT_THAT(limits(), ElementsAre("--minimum-bandwidth", "--gpu", "--bytes", "--iterations",
                                    "--sizes", "--all-pairs", "--relaxed-ordering", "--timeout"));
}

TEST_F(OwnLimitsTest, InjectedFaultNeverCountsAndOptionsOfTheUnitDo) {
  request.afterStart = true;
  request.iterations = 1;
  EXPECT_THAT(limits(), IsEmpty());
  request.inject = "flip";
  EXPECT_THAT(limits(), ElementsAre("--inject"));
}

TEST(NcclSizesTest, AreThoseOfThePublishedTableOrOfItsCommandOrOne) {
  constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;
  VerifyRequest request;
  EXPECT_THAT(ncclSizesOf(request), ElementsAre(gibibyte, 10 * gibibyte));
  request.sizes = true;
  EXPECT_EQ(ncclSizesOf(request).front(), 8);
  EXPECT_EQ(ncclSizesOf(request).back(), 10 * gibibyte);
  request.ncclBytes = 64;
  EXPECT_THAT(ncclSizesOf(request), ElementsAre(64));
}

}  // namespace
}  // namespace vfpass::commands
