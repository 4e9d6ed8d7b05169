#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "concurrent_runs.hpp"
#include "vfpass/error.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const Transfer hostWrite{"rail0 - train1:rail0", "write", "host", 65536, 10};

Json report(const std::string& sustained) {
  return Json::parse(R"({"passed": true, "runs": [{"passed": true,
    "settings": {"operation": "write", "bytes": 65536},
    "memory": {"initiator": {"kind": "host"}, "target": {"kind": "host"}},
    "bandwidth": {"gigabits_per_second": 50.0},
    "owners": {"initiator": {"bytes_checked": 0}, "target": {"bytes_checked": 1310720}},
    "owner": {"bytes_checked": 1310720})" +
                     (sustained.empty() ? "" : ", \"sustained\": " + sustained) + "}]}");
}

constexpr const char* tenSeconds =
    R"({"begin_seconds": 100.5, "end_seconds": 110.5, "seconds": 9.9, "messages": 1000,
        "gigabits_per_second": 42.25})";

TogetherVerdict judge(const Json& initiator) {
  std::promise<PairReports> reports;
  reports.set_value({initiator, report("")});
  auto future = reports.get_future();
  return judgeTogether(hostWrite, future);
}

TEST(JudgeTogether, ReadsRateAndTimes) {
  const auto verdict = judge(report(tenSeconds));
  EXPECT_EQ(verdict.finding.outcome, Outcome::passed) << verdict.finding.seen;
  EXPECT_EQ(verdict.finding.key, "peer-together-host");
  EXPECT_THAT(verdict.finding.seen, HasSubstr("42.2 Gb/s for 10.0 s"));
  ASSERT_TRUE(verdict.run);
  EXPECT_DOUBLE_EQ(verdict.run->begin, 100.5);
  EXPECT_EQ(verdict.claimedBytes, 1310720U + 1000U * 65536U) << "of checked passes and sustained";
}

TEST(JudgeTogether, ImpossibleReportFails) {
  for (const char* sustained :
       {"", "{}", "7", R"({"begin_seconds": 5, "end_seconds": 4, "gigabits_per_second": 1})",
        R"({"begin_seconds": 5, "end_seconds": 6, "gigabits_per_second": 0})",
        R"({"begin_seconds": "x", "end_seconds": 6, "gigabits_per_second": 1})"}) {
    const auto verdict = judge(report(sustained));
    EXPECT_EQ(verdict.finding.outcome, Outcome::failed) << sustained;
    EXPECT_FALSE(verdict.run) << sustained;
  }
}

TEST(JudgeTogether, ImpossibleNumberOfMessagesDoesNotWrapAround) {
  const auto verdict = judge(report(
      R"({"begin_seconds": 5, "end_seconds": 6, "gigabits_per_second": 1, "messages": 18446744073709551615})"));
  EXPECT_GT(verdict.claimedBytes, std::uint64_t{1} << 60U);
}

TEST(JudgeTogether, WrongByteFails) {
  Json wrong = report(tenSeconds);
  wrong["passed"] = wrong["runs"][0]["passed"] = false;
  EXPECT_EQ(judge(wrong).finding.outcome, Outcome::failed);
}

TEST(JudgeTogether, AgentThatDoesNotAnswerIsNotObservable) {
  std::promise<PairReports> reports;
  reports.set_exception(std::make_exception_ptr(Error("no answer", "start the agent")));
  auto future = reports.get_future();
  const auto verdict = judgeTogether(hostWrite, future);
  EXPECT_EQ(verdict.finding.outcome, Outcome::notObservable);
  EXPECT_EQ(verdict.finding.seen + "; " + verdict.finding.remedy, "no answer; start the agent");
}

class JudgeOverlapTest : public testing::Test {
 protected:
  Finding judgePairs(std::size_t pairs, const std::vector<SustainedRun>& runs) {
    for (const SustainedRun& run : runs) {
      together.pairs.push_back({"pair", 50, run.gigabitsPerSecond});
    }
    return judgeOverlap(pairs, runs, together);
  }
  AllPairs together;
};

TEST_F(JudgeOverlapTest, AddsTheRatesOfRunsThatOverlap) {
  const auto finding = judgePairs(2, {{100, 110, 30}, {103, 113, 40}});
  EXPECT_EQ(finding.outcome, Outcome::passed);
  EXPECT_THAT(finding.seen, HasSubstr("2 pairs: 70.0 Gb/s at the same time for 7.0 s"));
  EXPECT_THAT(finding.seen, HasSubstr("alone is 100.0 Gb/s"));
  EXPECT_DOUBLE_EQ(together.aggregate(), 70);
  EXPECT_DOUBLE_EQ(together.overlapSeconds, 7);
  EXPECT_DOUBLE_EQ(together.shortestSeconds, 10);
}

TEST_F(JudgeOverlapTest, RunsOneAfterAnotherAreNotTogether) {
  const auto finding = judgePairs(2, {{100, 110, 30}, {111, 121, 40}});
  EXPECT_EQ(finding.outcome, Outcome::notObservable);
  EXPECT_THAT(finding.seen, HasSubstr("only 0.0 s of 10.0 s"));
  EXPECT_THAT(finding.remedy, HasSubstr("--sustain"));
}

TEST_F(JudgeOverlapTest, FailedPairLeavesTheResultOpen) {
  const auto finding = judgePairs(3, {{100, 110, 30}, {100, 110, 40}});
  EXPECT_EQ(finding.outcome, Outcome::notObservable);
  EXPECT_THAT(finding.seen, HasSubstr("1 of 3 pairs did not complete"));
}

}  // namespace
}  // namespace vfpass::verify
