#include "rdma_counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::commands {
namespace {

using testing::HasSubstr;

Figure checked(std::uint64_t bytes, const std::string& subject = "rail0") {
  Figure figure;
  figure.subject = subject;
  figure.checkedBytes = bytes;
  return figure;
}

RdmaClaim claimed(const std::vector<Figure>& figures) { return claimInLoopback("rail0", figures); }

Outcome judged(const RdmaClaim& claim, std::uint64_t received, std::uint64_t sent) {
  const VfTraffic before{100, 100};
  return judgeRdmaBytes(claim, before, VfTraffic{100 + received, 100 + sent}).outcome;
}

TEST(JudgeRdmaBytesTest, ComparesWithAllCheckedBytes) {
  const RdmaClaim claim = claimed({checked(600), checked(400), checked(7, "rail1")});
  EXPECT_EQ(judged(claim, 1000, 10), Outcome::passed) << "one direction is enough, as with reads";
  EXPECT_EQ(judged(claim, 10, 1000), Outcome::passed);
  EXPECT_EQ(judged(claim, 999, 999), Outcome::warning);
}

TEST(JudgeRdmaBytesTest, VfOfPairMovesWritesAndReadsInDifferentDirections) {
  const std::vector<Figure> figures{checked(600, "rail0 - train1:rail1"),
                                    checked(400, "rail0 - train1:rail1"),
                                    checked(9000, "rail1 - train1:rail0"), checked(9000, "")};
  for (const RdmaClaim& claim :
       {claimOfPairs("", "rail0", figures), claimOfPairs("train1:", "rail1", figures)}) {
    EXPECT_EQ(claim.bytes, 1000U) << claim.subject;
    EXPECT_EQ(judged(claim, 400, 600), Outcome::passed) << claim.subject;
    EXPECT_EQ(judged(claim, 399, 600), Outcome::warning) << claim.subject;
  }
  EXPECT_EQ(claimOfPairs("train1:", "rail1", figures).subject, "train1:rail1");
  EXPECT_EQ(claimOfPairs("", "rail", figures).bytes, 0U) << "another entry";
}

TEST(JudgeRdmaBytesTest, GuestThatFloodsEthernetPacketsIsNamed) {
  const VfTraffic still{7, 7};
  const Finding finding = judgeRdmaBytes(claimed({checked(1000)}), still, still);
  EXPECT_EQ(finding.key, "rdma-counters");
  EXPECT_EQ(finding.outcome, Outcome::warning);
  EXPECT_EQ(finding.observer, Observer::host);
  EXPECT_EQ(finding.seen, "0 bytes");
  EXPECT_THAT(finding.remedy, HasSubstr("the data did not go by RDMA"));
}

TEST(JudgeRdmaBytesTest, WithoutCountersNothingHasPassed) {
  const RdmaClaim claim = claimed({checked(1)});
  EXPECT_EQ(judgeRdmaBytes(claim, std::nullopt, std::nullopt).outcome, Outcome::waived);
  EXPECT_EQ(judgeRdmaBytes(claim, VfTraffic{}, std::nullopt).outcome, Outcome::waived);
}

TEST(JudgeRdmaBytesTest, CountersThatStartAgainAndHugeClaimsDoNotWrapAround) {
  const Finding restarted =
      judgeRdmaBytes(claimed({checked(1)}), VfTraffic{50, 50}, VfTraffic{0, 0});
  EXPECT_EQ(restarted.outcome, Outcome::warning);
  const Finding huge =
      judgeRdmaBytes(claimed({checked(UINT64_MAX), checked(5)}), VfTraffic{}, VfTraffic{4, 4});
  EXPECT_EQ(huge.outcome, Outcome::warning);
}

}  // namespace
}  // namespace vfpass::commands
