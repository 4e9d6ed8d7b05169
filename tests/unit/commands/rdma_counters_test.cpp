#include "rdma_counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::commands {
namespace {

using testing::HasSubstr;

Figure checked(std::uint64_t bytes) {
  Figure figure;
  figure.subject = "rail0";
  figure.checkedBytes = bytes;
  return figure;
}

Outcome judged(std::uint64_t received, std::uint64_t sent) {
  const host::RdmaBytes before{100, 100};
  return judgeRdmaBytes("rail0", {checked(600), checked(400)}, before,
                        host::RdmaBytes{100 + received, 100 + sent})
      .outcome;
}

TEST(JudgeRdmaBytesTest, ComparesWithAllCheckedBytes) {
  EXPECT_EQ(judged(1000, 10), Outcome::passed) << "one direction is enough, as with reads";
  EXPECT_EQ(judged(10, 1000), Outcome::passed);
  EXPECT_EQ(judged(999, 999), Outcome::warning);
}

TEST(JudgeRdmaBytesTest, GuestThatFloodsEthernetPacketsIsNamed) {
  const host::RdmaBytes still{7, 7};
  const Finding finding = judgeRdmaBytes("rail0", {checked(1000)}, still, still);
  EXPECT_EQ(finding.key, "rdma-counters");
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_EQ(finding.observer, Observer::host);
  EXPECT_EQ(finding.seen, "0 bytes");
  EXPECT_THAT(finding.remedy, HasSubstr("the data did not go by RDMA"));
}

TEST(JudgeRdmaBytesTest, WithoutCountersNothingHasPassed) {
  EXPECT_EQ(judgeRdmaBytes("rail0", {checked(1)}, std::nullopt, std::nullopt).outcome,
            Outcome::waived);
  EXPECT_EQ(judgeRdmaBytes("rail0", {checked(1)}, host::RdmaBytes{}, std::nullopt).outcome,
            Outcome::waived);
}

TEST(JudgeRdmaBytesTest, CountersThatStartAgainAndHugeClaimsDoNotWrapAround) {
  const Finding restarted =
      judgeRdmaBytes("rail0", {checked(1)}, host::RdmaBytes{50, 50}, host::RdmaBytes{0, 0});
  EXPECT_EQ(restarted.outcome, Outcome::warning);
  const Finding huge = judgeRdmaBytes("rail0", {checked(UINT64_MAX), checked(5)}, host::RdmaBytes{},
                                      host::RdmaBytes{4, 4});
  EXPECT_EQ(huge.outcome, Outcome::warning);
}

}  // namespace
}  // namespace vfpass::commands
