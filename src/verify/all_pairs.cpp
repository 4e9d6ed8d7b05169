#include "all_pairs.hpp"

#include <algorithm>
#include <future>
#include <memory>

#include "concurrent_tasks.hpp"
#include "judge_together.hpp"
#include "settled_traffic.hpp"
#include "transfer_options.hpp"

namespace vfpass::verify {
namespace {

/// What both ends of a pair counted before the run.
struct CountersBefore {
  std::optional<VfTraffic> sent;
  std::optional<VfTraffic> received;
};

Transfer transferOf(const WorkingPair& pair, const std::string& memory, const VerifyPlan& plan) {
  Transfer transfer{pair.subject, "write", memory, plan.messageBytes, plan.iterations};
  transfer.software = pair.initiator.port.software || pair.target.port.software;
  return transfer;
}

std::vector<std::string> optionsOf(const Transfer& transfer, const VerifyPlan& plan) {
  auto options = transferOptions(transfer);
  const auto milliseconds = std::chrono::milliseconds(plan.sustain).count();
  options.insert(options.end(), {"--sustain", std::to_string(milliseconds)});
  return options;
}

// In a thread of its own.
PairReports runPair(const WorkingPair& pair, const Transfer& transfer, const VerifyPlan& plan,
                    const agent::Agent::Checkpoint& checkpoint) {
  agent::Agent near = pair.initiator.agent.withCheckpoint(checkpoint);
  agent::Agent far = pair.target.agent.withCheckpoint(checkpoint);
  return runSession({near, pair.initiator}, {far, pair.target}, plan, optionsOf(transfer, plan));
}

void judgeCounters(const PairEnd& end, std::uint64_t claimed,
                   const std::optional<VfTraffic>& before, VerifyReport& report) {
  Finding finding = settledTraffic(end.lease, claimed, before, end.traffic);
  finding.subject = end.subject;
  report.findings.push_back(std::move(finding));
}

double aloneRate(const std::vector<Figure>& figures, const Transfer& transfer) {
  const auto found = std::ranges::find_if(figures, [&](const Figure& each) {
    return each.subject == transfer.subject && each.operation == "write" &&
           each.memory == transfer.memory && !each.relaxedOrdering &&
           each.source == Figure().source && each.gigabitsPerSecond > 0;
  });
  return found == figures.end() ? 0 : found->gigabitsPerSecond;
}

}  // namespace

void moveTogether(const std::vector<WorkingPair>& pairs, const std::string& memory,
                  const VerifyPlan& plan, VerifyReport& report) {
  std::vector<CountersBefore> before;
  std::vector<Transfer> transfers;
  for (const WorkingPair& pair : pairs) {
    before.push_back(
        {pair.initiator.traffic(pair.initiator.lease), pair.target.traffic(pair.target.lease)});
    transfers.push_back(transferOf(pair, memory, plan));
  }
  std::vector<std::future<PairReports>> runs;
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto promise = std::make_shared<std::promise<PairReports>>();
    runs.push_back(promise->get_future());
    tasks.emplace_back([&, i, promise](const agent::Agent::Checkpoint& checkpoint) {
      try {
        promise->set_value(runPair(pairs[i], transfers[i], plan, checkpoint));
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    });
  }
  const agent::Agent& agent = pairs.front().initiator.agent;
  runConcurrently(tasks, tasks.size(), [&agent] { agent.checkpoint(); });

  AllPairs together{memory, {}, 0, 0};
  std::vector<SustainedRun> sustained;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    TogetherVerdict verdict = judgeTogether(transfers[i], runs[i]);
    report.findings.push_back(verdict.finding);
    if (verdict.run) {
      judgeCounters(pairs[i].initiator, verdict.claimedBytes, before[i].sent, report);
      judgeCounters(pairs[i].target, verdict.claimedBytes, before[i].received, report);
      sustained.push_back(*verdict.run);
      together.pairs.push_back({transfers[i].subject, aloneRate(report.figures, transfers[i]),
                                verdict.run->gigabitsPerSecond});
    }
  }
  report.findings.push_back(judgeOverlap(pairs.size(), sustained, together));
  report.allPairs.push_back(std::move(together));
}

}  // namespace vfpass::verify
