#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "concurrent_runs.hpp"
#include "scripted_guest.hpp"
#include "sound_inventory.hpp"
#include "vfpass/error.hpp"
#include "vfpass/verify/verify_guest.hpp"

namespace vfpass::verify {
namespace {

Lease vfOn(const std::string& entry, unsigned bus) {
  Lease lease;
  lease.entry = entry;
  lease.pf = {0, static_cast<std::uint8_t>(bus), 0, 0};
  return lease;
}

using Groups = std::vector<VfGroup>;

TEST(IndependentVfs, VfsOfDifferentPfsAreIndependent) {
  EXPECT_EQ(independentVfs({vfOn("a", 1), vfOn("b", 2), vfOn("c", 1)}, {}), Groups({{0, 2}, {1}}));
}

TEST(IndependentVfs, VfsThatShareGpuDepend) {
  EXPECT_EQ(independentVfs({vfOn("a", 1), vfOn("b", 2), vfOn("c", 3)},
                           {{"a", {0}}, {"b", {1, 2}}, {"c", {2}}}),
            Groups({{0}, {1, 2}}));
}

TEST(IndependentVfs, VfJoinsTwoGroups) {
  EXPECT_EQ(independentVfs({vfOn("a", 1), vfOn("b", 2), vfOn("c", 1)}, {{"b", {0}}, {"c", {0}}}),
            Groups({{0, 1, 2}}));
}

TEST(IndependentVfs, EachGroupNeedsTwoProcessors) {
  EXPECT_EQ(concurrentGroups(8, 16), 8U);
  EXPECT_EQ(concurrentGroups(8, 7), 3U);
  EXPECT_EQ(concurrentGroups(3, 64), 3U);
  EXPECT_EQ(concurrentGroups(8, 1), 1U);
  EXPECT_EQ(concurrentGroups(8, 0), 1U) << "unknown";
  EXPECT_EQ(concurrentGroups(0, 8), 1U);
}

using Checkpoint = agent::Agent::Checkpoint;

TEST(ConcurrentTasks, RunsAsManyAtTheSameTimeAsItHasWorkers) {
  std::latch all(3);
  const Task task = [&](const Checkpoint&) { all.arrive_and_wait(); };
  runConcurrently({task, task, task}, 3, [] {});
  EXPECT_TRUE(all.try_wait());
}

TEST(ConcurrentTasks, RunsNoMoreThanWorkers) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<int> ran = 0;
  const Task task = [&](const Checkpoint&) {
    most = std::max(most.load(), ++running);
    std::this_thread::yield();
    --running;
    ++ran;
  };
  runConcurrently({task, task, task, task, task}, 2, [] {});
  EXPECT_EQ(ran, 5);
  EXPECT_LE(most, 2);
}

TEST(ConcurrentTasks, StopEndsRunningTasksOnceAndStartsNoOthers) {
  std::atomic<int> stopped = 0;
  std::atomic<bool> cleanedUp = false;
  const Task endless = [&](const Checkpoint& checkpoint) {
    try {
      for (;;) {
        checkpoint();
        std::this_thread::yield();
      }
    } catch (const Error&) {
      ++stopped;
      checkpoint();  // the cleanup uses the same agent
      cleanedUp = true;
    }
  };
  bool never = false;
  const Task later = [&](const Checkpoint&) { never = true; };
  EXPECT_THROW(runConcurrently({endless, later}, 1, [] { throw std::runtime_error("SIGINT"); }),
               std::runtime_error);
  EXPECT_EQ(stopped, 1);
  EXPECT_TRUE(cleanedUp);
  EXPECT_FALSE(never);
}

using Json = nlohmann::json;

constexpr int vfs = 8;

std::string transferAt(double gigabits) {
  return R"({"passed": true, "runs": [{"owners": {"target": {"bytes_checked": 10000}},
    "bandwidth": {"gigabits_per_second": )" +
         std::to_string(gigabits) + "}}]}";
}

// The sound guest's inventory with as many VFs.
std::string inventoryOfVfs() {
  Json inventory = Json::parse(soundInventory);
  const Json netdev = inventory["netdevs"][0];
  const Json device = inventory["rdma"]["devices"][0];
  inventory["netdevs"] = inventory["rdma"]["devices"] = Json::array();
  for (int i = 0; i < vfs; ++i) {
    const std::string pci = "0000:0" + std::to_string(i + 1) + ":00.0";
    inventory["netdevs"].push_back(netdev);
    inventory["netdevs"].back().update({{"name", "eth" + std::to_string(i)},
                                        {"mac", "52:54:00:aa:bb:0" + std::to_string(i)},
                                        {"pci", pci}});
    inventory["rdma"]["devices"].push_back(device);
    inventory["rdma"]["devices"].back().update(
        {{"name", "mlx5_" + std::to_string(i)}, {"pci", pci}});
  }
  return inventory.dump();
}

// A guest with VFs of several PFs, and a transfer that ends only when as many as `together` have
// been started. libvirt sends one command after another to an agent, hence the lock.
class ConcurrentVfsTest : public testing::Test {
 protected:
  ConcurrentVfsTest() {
    for (int i = 0; i < vfs; ++i) {
      Lease lease;
      lease.entry = "rail" + std::to_string(i);
      lease.pf = {0, static_cast<std::uint8_t>(i + 1), 0, 0};
      vfOf(lease).settings.mac = parseMacAddress("52:54:00:aa:bb:0" + std::to_string(i));
      plan.leases.push_back(lease);
    }
    plan.vcpus = 2 * vfs;
    plan.messageBytes = 1000;
    plan.iterations = 10;
    plan.relaxedOrdering = RelaxedOrdering::off;
    plan.latency = false;
    plan.tools = false;
    guest.inventory = inventoryOfVfs();
    answer_ = guest.hypervisor.agent;
    guest.hypervisor.agent = [this](const std::string& command) { return answer(command); };
  }

  std::string answer(const std::string& command) {
    const std::lock_guard lock(mutex_);
    const Json request = Json::parse(command);
    if (request["execute"] == "guest-exec-status" && transfers() != 0 && transfers() < together) {
      return R"({"return": {"exited": false}})";
    }
    return answer_(command);
  }

  [[nodiscard]] long transfers() const {
    return std::ranges::count(guest.commands, std::string("loopback"));
  }

  VerifyReport verify() {
    guest.commands.clear();
    agent::Agent agent(guest.hypervisor, Uuid{}, "train0", std::chrono::seconds(20));
    const auto traffic = [this](const Lease&) {
      const std::lock_guard lock(mutex_);
      return std::optional(VfTraffic{0, static_cast<std::uint64_t>(transfers()) * 11000, 0, 0});
    };
    const auto host = [](const Lease&) {
      HostSide side;
      side.link = {8000, 16};
      side.hold = {true, "vfio-pci", true, "process 7 (qemu)"};
      return side;
    };
    return verifyGuest(agent, {"the probe", "vfpass-probe-1"}, plan, {traffic, {}, host});
  }

  static long count(const VerifyReport& report, std::string_view key, Outcome outcome) {
    return std::ranges::count_if(report.findings, [&](const Finding& each) {
      return each.key == key && each.outcome == outcome;
    });
  }

  ScriptedGuest guest;
  VerifyPlan plan;
  long together = 0;

 private:
  std::mutex mutex_;
  std::function<std::string(const std::string&)> answer_;
};

TEST_F(ConcurrentVfsTest, VerifiesVfsOfDifferentPfsAtTheSameTime) {
  together = vfs;
  guest.transfers.assign(std::size_t{2} * vfs, transferAt(97));
  const auto report = verify();
  EXPECT_EQ(count(report, "data-host", Outcome::passed), 2 * vfs);
  EXPECT_EQ(report.concurrentVfs, std::size_t{vfs});
  EXPECT_EQ(count(report, "other-vfs", Outcome::passed), 0) << "they move data, too";
  std::vector<std::string> order;
  for (const auto& each : report.findings) {
    if (!each.subject.empty() && (order.empty() || order.back() != each.subject)) {
      order.push_back(each.subject);
    }
  }
  EXPECT_THAT(order, testing::ElementsAre("rail0", "rail1", "rail2", "rail3", "rail4", "rail5",
                                          "rail6", "rail7"))
      << "in the mapping's order, whichever ended first";
}

TEST_F(ConcurrentVfsTest, VerifiesOneAfterAnotherIfSequentialOrWithoutProcessors) {
  for (const auto& [concurrent, vcpus] : {std::pair(false, 64U), std::pair(true, 0U)}) {
    plan.concurrent = concurrent;
    plan.vcpus = vcpus;
    guest.transfers.assign(std::size_t{2} * vfs, transferAt(97));
    const auto report = verify();
    EXPECT_EQ(report.concurrentVfs, 1U);
    EXPECT_EQ(count(report, "data-host", Outcome::passed), 2 * vfs);
    EXPECT_NE(count(report, "other-vfs", Outcome::passed) +
                  count(report, "other-vfs", Outcome::notObservable),
              0)
        << "compared with all other VFs";
  }
}

TEST_F(ConcurrentVfsTest, VerifiesSlowVfAgainAlone) {
  plan.leases.resize(2);
  plan.minimumShare = 0.9;  // of 72.5 Gb/s: PCI Express 3.0 x16 in loopback
  together = 2;
  // Both are slow at first; then one is fast alone, and the other stays slow.
  guest.transfers = {transferAt(40), transferAt(40), transferAt(40), transferAt(40),
                     transferAt(70), transferAt(70), transferAt(41), transferAt(41)};
  const auto report = verify();
  EXPECT_EQ(transfers(), 8);
  EXPECT_EQ(count(report, "bandwidth", Outcome::passed), 1);
  EXPECT_EQ(count(report, "bandwidth", Outcome::failed), 1);
  EXPECT_EQ(report.figures.size(), 4U) << "those of the last measurement";
  EXPECT_EQ(report.figures.front().gigabitsPerSecond, 70);
}

TEST_F(ConcurrentVfsTest, VfSlowerThanExpectedIsMeasuredAgainAloneAndKeepsBoth) {
  plan.leases.resize(2);
  plan.isSlow = [](const std::string& entry, const std::vector<Figure>& figures) {
    return entry == "rail0" && figures.front().gigabitsPerSecond < 50;
  };
  together = 2;
  guest.transfers = {transferAt(40), transferAt(40), transferAt(40),
                     transferAt(40), transferAt(70), transferAt(70)};
  auto report = verify();
  EXPECT_EQ(transfers(), 6);
  EXPECT_EQ(report.figures.front().gigabitsPerSecond, 70);
  ASSERT_EQ(report.together.size(), 1U);
  EXPECT_EQ(report.together.at("rail0").front().gigabitsPerSecond, 40);
  plan.probeTimeout = std::chrono::seconds(0);
  guest.transfers = {transferAt(40), transferAt(40), transferAt(40), transferAt(40)};
  report = verify();
  EXPECT_EQ(transfers(), 4) << "no time for it";
  EXPECT_TRUE(report.together.empty());
}

TEST_F(ConcurrentVfsTest, ErrorOfOneVfDoesNotHideTheOthers) {
  plan.leases.resize(2);
  guest.transfers = {transferAt(97), "no JSON", transferAt(97), transferAt(97)};
  const auto report = verify();
  EXPECT_EQ(count(report, "data-host", Outcome::notObservable), 1);
  EXPECT_GE(count(report, "data-host", Outcome::passed), 1);
  EXPECT_EQ(verdict(report), Outcome::notObservable);
}

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
    R"({"begin_seconds": 100.5, "end_seconds": 110.5, "seconds": 9.9, "messages": 800000,
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
  EXPECT_EQ(verdict.claimed, (ClaimedBytes{{1310720U + std::uint64_t{800000} * 65536U, 0}, false}))
      << "of checked passes and sustained";
}

TEST(JudgeTogether, ImpossibleReportFails) {
  for (const char* sustained :
       {"", "{}", "7",
        R"({"begin_seconds": 5, "end_seconds": 4, "messages": 9999, "gigabits_per_second": 1})",
        R"({"begin_seconds": 5, "end_seconds": 6, "messages": 9999, "gigabits_per_second": 0})",
        R"({"begin_seconds": "x", "end_seconds": 6, "messages": 9999, "gigabits_per_second": 1})",
        R"({"begin_seconds": 5, "end_seconds": 1e300, "messages": 9999,
            "gigabits_per_second": 1e-300})"}) {
    const auto verdict = judge(report(sustained));
    EXPECT_EQ(verdict.finding.outcome, Outcome::failed) << sustained;
    EXPECT_FALSE(verdict.run) << sustained;
  }
}

// The host counts the messages, and not the time.
TEST(JudgeTogether, RateThatItsMessagesDoNotMakeFails) {
  Json invented = report(tenSeconds);
  invented["runs"][0]["sustained"]["messages"] = 1000;
  const auto verdict = judge(invented);
  EXPECT_EQ(verdict.finding.outcome, Outcome::failed);
  EXPECT_THAT(verdict.finding.seen, HasSubstr("impossible"));
  EXPECT_FALSE(verdict.run);
}

TEST(JudgeTogether, ImpossibleNumberOfMessagesDoesNotWrapAround) {
  const auto verdict = judge(report(
      R"({"begin_seconds": 5, "end_seconds": 6, "gigabits_per_second": 1, "messages": 18446744073709551615})"));
  EXPECT_GT(verdict.claimed.least.sent, std::uint64_t{1} << 60U);
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
