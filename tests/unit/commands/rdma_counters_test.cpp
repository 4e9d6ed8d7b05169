#include "rdma_counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfpass::commands {
namespace {

using testing::HasSubstr;

Figure checked(std::uint64_t bytes, const std::string& subject = "rail0",
               const std::string& operation = "write") {
  Figure figure;
  figure.operation = operation;
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
  const std::string pair = "rail0 - train1:rail1";
  const std::vector<Figure> figures{checked(600, pair), checked(400, pair, "read"),
                                    checked(80, pair, "send"),
                                    checked(9000, "rail1 - train1:rail0"), checked(9000, "")};
  const RdmaClaim near = claimOfPairs("", "rail0", figures);
  EXPECT_EQ(judged(near, 400, 600), Outcome::passed);
  EXPECT_EQ(judged(near, 399, 6000), Outcome::warning) << "it has invented the reads";
  EXPECT_EQ(judged(near, 4000, 599), Outcome::warning) << "it has invented the writes";
  const RdmaClaim far = claimOfPairs("train1:", "rail1", figures);
  EXPECT_EQ(far.subject, "train1:rail1");
  EXPECT_EQ(judged(far, 600, 400), Outcome::passed);
  EXPECT_EQ(judged(far, 6000, 399), Outcome::warning);
  EXPECT_EQ(judgeRdmaBytes(far, VfTraffic{}, VfTraffic{600, 399}).seen,
            "399 bytes sent and 600 bytes received");
  const RdmaClaim none = claimOfPairs("", "rail", figures);
  EXPECT_EQ(none.sent + none.received, 0U) << "another entry";
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
