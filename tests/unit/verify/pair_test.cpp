#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "judge_pair.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::verify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

Lease lease(const std::string& name, bool infiniband = false) {
  Lease result;
  result.entry = name;
  vfOf(result).infiniband = infiniband;
  return result;
}

std::vector<std::string> namesOf(const std::vector<LeasePair>& pairs) {
  std::vector<std::string> names;
  for (const auto& pair : pairs) {
    names.push_back(pair.initiator.entry + "-" + pair.target.entry);
  }
  return names;
}

TEST(PairLeasesTest, PairsSameNamesFirstThenSameLinkLayers) {
  EXPECT_THAT(namesOf(pairLeases({lease("a"), lease("rail1"), lease("ib", true)},
                                 {lease("rail1"), lease("x", true), lease("b")})),
              ElementsAre("rail1-rail1", "a-b", "ib-x"));
}

TEST(PairLeasesTest, LeavesOutEntriesWithoutCounterpart) {
  EXPECT_THAT(namesOf(pairLeases({lease("a"), lease("b")}, {lease("c")})), ElementsAre("a-c"));
  EXPECT_TRUE(pairLeases({lease("a")}, {lease("ib", true)}).empty());
}

TEST(JudgeNetworkTest, FailsForDifferentVlans) {
  Lease near = lease("a");
  Lease far = lease("a");
  EXPECT_EQ(judgeNetwork("a", near, far).outcome, Outcome::passed);
  vfOf(near).settings.vlan = Vlan{.id = 100};
  vfOf(far).settings.vlan = Vlan{.id = 100};
  EXPECT_EQ(judgeNetwork("a", near, far).outcome, Outcome::passed);
  vfOf(far).settings.vlan = Vlan{.id = 200};
  const Finding finding = judgeNetwork("a", near, far);
  EXPECT_EQ(finding.outcome, Outcome::failed);
  EXPECT_EQ(finding.seen, "Ethernet, VLAN 100 (802.1Q), and Ethernet, VLAN 200 (802.1Q)");
  EXPECT_FALSE(finding.remedy.empty());
}

TEST(JudgeNetworkTest, FailsForDifferentLinkLayers) {
  EXPECT_EQ(judgeNetwork("a", lease("a"), lease("b", true)).outcome, Outcome::failed);
}

const Json soundTarget = Json::parse(
    R"({"passed": true, "runs": [{"passed": true, "owner": {"bytes_checked": 1000}}]})");

class JudgeReachTest : public testing::Test {
 protected:
  Finding judge(const Json& initiator, const Json& target) {
    return judgeReach("a - train1:a", {initiator, target}, "`vfpass guest-setup train0`");
  }
  const Json sound = Json::parse(R"({"passed": true, "runs": [
    {"latency": {"median": 3.4, "p99": 9.5}, "settings": {"bytes": 8}}]})");
};

TEST_F(JudgeReachTest, PassesWhenMessagesArrive) {
  EXPECT_EQ(judge(sound, soundTarget).outcome, Outcome::passed);
  EXPECT_EQ(judge(sound, soundTarget).seen, "3.4 us in one direction");
}

TEST_F(JudgeReachTest, ReportsErrorOfSideThatFailedFirst) {
  const Json failed =
      Json::parse(R"({"error": "transport retry counter exceeded", "passed": false})");
  const Json heard = Json::parse(R"({"error": "the other side failed: x", "passed": false})");
  EXPECT_EQ(judge(failed, heard).seen, "transport retry counter exceeded");
  EXPECT_EQ(judge(heard, failed).seen, "transport retry counter exceeded");
  EXPECT_EQ(judge(heard, heard).seen, "the other side failed: x");
  EXPECT_EQ(judge(heard, Json()).seen, "the other side failed: x");
}

TEST_F(JudgeReachTest, FailsWithoutReportsOfBothGuests) {
  EXPECT_EQ(judge(sound, Json()).outcome, Outcome::failed);
  EXPECT_THAT(judge(sound, Json()).remedy, HasSubstr("(`vfpass guest-setup train0`)"));
  EXPECT_EQ(judge(Json(), soundTarget).outcome, Outcome::failed);
  for (const double lie : {-1.0, 0.0, 1e300}) {
    Json impossible = sound;
    impossible["runs"][0]["latency"]["median"] = lie;
    EXPECT_EQ(judge(impossible, soundTarget).outcome, Outcome::failed) << lie;
  }
}

class JudgePairTransferTest : public testing::Test {
 protected:
  Finding judge(const char* operation, const Json& target) {
    const Json initiator = Json::parse(R"({"passed": true, "runs": [{"owners": {
      "initiator": {"bytes_checked": 1000}, "target": {"bytes_checked": 1000}},
      "bandwidth": {"gigabits_per_second": 97}}]})");
    return judgePairTransfer({"a", operation, "host", 100, 10}, {initiator, target}, figures);
  }
  std::vector<Figure> figures;
};

TEST_F(JudgePairTransferTest, NeedsPassFromBothGuests) {
  EXPECT_EQ(judge("write", soundTarget).outcome, Outcome::passed);
  EXPECT_EQ(judge("write", soundTarget).key, "peer-data-host");
  EXPECT_EQ(figures.size(), 2U);
  EXPECT_EQ(judge("write", Json()).outcome, Outcome::failed);
  EXPECT_EQ(judge("read", Json()).outcome, Outcome::failed);
  EXPECT_EQ(figures.size(), 2U) << "no figure for a failed transfer";
}

// The initiator's report on the target's memory does not replace the target's own report.
TEST_F(JudgePairTransferTest, NeedsCheckByOwnerOfMemory) {
  const Json lazy = Json::parse(
      R"({"passed": true, "runs": [{"passed": true, "owner": {"bytes_checked": 999}}]})");
  EXPECT_EQ(judge("write", lazy).outcome, Outcome::failed);
  EXPECT_THAT(judge("write", lazy).seen, HasSubstr("999"));
  EXPECT_EQ(judge("read", lazy).outcome, Outcome::passed)
      << "the initiator owns the memory that a read writes";
}

class JudgePairLatencyTest : public testing::Test {
 protected:
  Finding judge(const Json& initiator, const Json& target) {
    return judgePairLatency({"a", "read", "host", 8, 10}, {initiator, target}, figures);
  }
  std::vector<Figure> figures;
  const Json sound = Json::parse(R"({"passed": true, "runs": [
    {"settings": {"operation": "read"}, "memory": {"target": {"kind": "host"}},
     "owners": {"initiator": {"bytes_checked": 80}}, "latency": {"median": 2.5, "p99": 4}},
    {"settings": {"operation": "send"}, "memory": {"target": {"kind": "host"}},
     "owners": {"target": {"bytes_checked": 80}}, "latency": {"median": 1.5, "p99": 2}}]})");
};

TEST_F(JudgePairLatencyTest, NeedsPassFromBothGuests) {
  const Finding finding = judge(sound, soundTarget);
  EXPECT_EQ(finding.key, "peer-latency-host");
  EXPECT_EQ(finding.outcome, Outcome::passed);
  EXPECT_EQ(figures.size(), 2U);
  EXPECT_EQ(judge(sound, Json()).outcome, Outcome::failed);
  EXPECT_EQ(judge(Json(), soundTarget).outcome, Outcome::failed);
  EXPECT_EQ(figures.size(), 2U);
}

TEST_F(JudgePairTransferTest, UsesSecondRunOfTargetForGpuMemory) {
  const Json run = Json::parse(R"({"owners": {"target": {"bytes_checked": 1000}},
      "bandwidth": {"gigabits_per_second": 97},
      "memory": {"initiator": {"kind": "gpu"}, "target": {"kind": "gpu"}}})");
  const Json target = Json::parse(R"({"passed": true, "runs": [
    {"owner": {"bytes_checked": 1000}}, {"owner": {"bytes_checked": 999}}]})");
  Transfer transfer{"a", "write", "gpu", 100, 10};
  transfer.besideHost = true;
  Json host = run;
  host["memory"]["initiator"]["kind"] = host["memory"]["target"]["kind"] = "host";
  const Json initiator{{"passed", true}, {"runs", {host, run}}};
  EXPECT_EQ(judgePairTransfer(transfer, {initiator, target}, figures).outcome, Outcome::failed);
  Json right = target;
  right["runs"][1]["owner"]["bytes_checked"] = 1000U;
  EXPECT_EQ(judgePairTransfer(transfer, {initiator, right}, figures).outcome, Outcome::passed);
  EXPECT_EQ(figures.back().besideHost, 97);
}

}  // namespace
}  // namespace vfpass::verify
