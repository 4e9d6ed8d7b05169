#include "concurrent_runs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <future>
#include <iomanip>
#include <limits>
#include <memory>
#include <sstream>

#include "transfer_options.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/error.hpp"

namespace vfpass::verify {
namespace {

using Gpus = std::map<std::string, std::vector<std::size_t>>;

bool shareGpu(const Lease& one, const Lease& other, const Gpus& gpus) {
  const auto first = gpus.find(one.entry);
  const auto second = gpus.find(other.entry);
  return first != gpus.end() && second != gpus.end() &&
         std::ranges::find_first_of(first->second, second->second) != first->second.end();
}

// Throws once for each task: the cleanup that follows uses the same agents.
agent::Agent::Checkpoint stopWhen(const std::atomic<bool>& stop) {
  return [&stop, told = std::make_shared<std::atomic<bool>>(false)] {
    if (stop && !told->exchange(true)) {
      throw Error("stopped");
    }
  };
}

// Waits for every worker, whatever the checkpoint throws.
std::exception_ptr waitForAll(std::vector<std::future<void>>& workers,
                              const agent::Agent::Checkpoint& checkpoint, std::atomic<bool>& stop) {
  constexpr std::chrono::milliseconds interval{100};
  std::exception_ptr stopped;
  for (auto& worker : workers) {
    while (worker.wait_for(interval) != std::future_status::ready) {
      try {
        checkpoint();
      } catch (...) {
        stopped = std::current_exception();
        stop = true;
      }
    }
  }
  return stopped;
}

}  // namespace

std::vector<VfGroup> independentVfs(const std::vector<Lease>& leases, const Gpus& gpus) {
  std::vector<VfGroup> groups;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const auto dependent = [&](const VfGroup& group) {
      return std::ranges::any_of(group, [&](std::size_t other) {
        return leases[i].pf == leases[other].pf || shareGpu(leases[i], leases[other], gpus);
      });
    };
    // This VF may connect groups that were independent so far.
    VfGroup joined;
    for (const VfGroup& group : groups) {
      if (dependent(group)) {
        joined.insert(joined.end(), group.begin(), group.end());
      }
    }
    std::erase_if(groups, dependent);
    joined.push_back(i);
    std::ranges::sort(joined);
    groups.push_back(joined);
  }
  std::ranges::sort(groups);
  return groups;
}

std::size_t concurrentGroups(std::size_t groups, unsigned vcpus) {
  return std::max<std::size_t>(1, std::min<std::size_t>(groups, vcpus / 2));
}

void runConcurrently(const std::vector<Task>& tasks, std::size_t workers,
                     const agent::Agent::Checkpoint& checkpoint) {
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t mine = next++; mine < tasks.size() && !stop; mine = next++) {
      tasks[mine](stopWhen(stop));
    }
  };
  std::vector<std::future<void>> running;
  for (std::size_t i = 0; i < std::min(workers, tasks.size()); ++i) {
    running.push_back(std::async(std::launch::async, work));
  }
  const std::exception_ptr stopped = waitForAll(running, checkpoint, stop);
  for (auto& worker : running) {
    worker.get();
  }
  if (stopped) {
    std::rethrow_exception(stopped);
  }
}

namespace {

using Json = nlohmann::json;

std::string withTenth(double value) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << value;
  return text.str();
}

std::uint64_t sustainedBytes(const Transfer& transfer, const Json& report) {
  const std::uint64_t count =
      JsonReader(report)["runs"].listOrEmpty().front()["sustained"]["messages"].numberOr(0);
  return count > std::numeric_limits<std::uint64_t>::max() / 2 / transfer.messageBytes
             ? std::numeric_limits<std::uint64_t>::max() / 2
             : count * transfer.messageBytes;
}

// The probe divides by the time of the rounds alone, which is nearly all of it: a rate of more than
// twice what the counted messages make in the whole time is invented, as the host counts them.
bool isPossible(const SustainedRun& run, std::uint64_t bytes) {
  constexpr double longest = 1e9;  // of a clock that begins at the guest's start
  const double counted = static_cast<double>(bytes) * 8 / 1e9;
  return run.begin >= 0 && run.end > run.begin && run.end < longest && run.gigabitsPerSecond > 0 &&
         run.gigabitsPerSecond * (run.end - run.begin) <= 2 * counted;
}

// nullopt for a report without sustained transfers, or with impossible values.
std::optional<SustainedRun> sustainedOf(const Transfer& transfer, const Json& report) {
  const auto runs = JsonReader(report)["runs"].listOrEmpty();
  if (runs.empty()) {
    return std::nullopt;
  }
  const JsonReader sustained = runs.front()["sustained"];
  const auto figure = [&](const char* name) { return sustained[name].figureOrNone().value_or(-1); };
  const SustainedRun run{figure("begin_seconds"), figure("end_seconds"),
                         figure("gigabits_per_second")};
  return isPossible(run, sustainedBytes(transfer, report)) ? std::optional(run) : std::nullopt;
}

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

double aloneRate(const std::vector<Figure>& figures, const Transfer& transfer) {
  const auto found = std::ranges::find_if(figures, [&](const Figure& each) {
    return each.subject == transfer.subject && each.operation == "write" &&
           each.memory == transfer.memory && !each.relaxedOrdering &&
           each.source == Figure().source && each.gigabitsPerSecond > 0;
  });
  return found == figures.end() ? 0 : found->gigabitsPerSecond;
}

}  // namespace

TogetherVerdict judgeTogether(const Transfer& transfer, std::future<PairReports>& reports) {
  TogetherVerdict verdict{{"peer-together-" + transfer.memory,
                           transfer.subject,
                           Outcome::notObservable,
                           "writes while all other pairs move data as well, all correct",
                           {},
                           {}},
                          {},
                          0};
  try {
    // All checked bytes have to be right, as for one pair alone.
    const PairReports both = reports.get();
    std::vector<Figure> ofCheckedPasses;
    const Finding data = judgePairTransfer(transfer, both, ofCheckedPasses);
    verdict.finding.outcome = data.outcome;
    verdict.finding.seen = data.seen;
    verdict.finding.remedy = data.remedy;
    if (data.outcome != Outcome::passed) {
      return verdict;
    }
    // Times and rate, to compare the pairs.
    verdict.run = sustainedOf(transfer, both.initiator);
    if (!verdict.run) {
      verdict.finding.outcome = Outcome::failed;
      verdict.finding.seen = "no sustained transfers in the report, or impossible ones";
      verdict.finding.remedy = otherBuilds;
      return verdict;
    }
    verdict.claimed = claimedBytes(transfer, both.initiator, false);
    verdict.claimed.least.sent += sustainedBytes(transfer, both.initiator);
    verdict.finding.seen = withTenth(verdict.run->gigabitsPerSecond) + " Gb/s for " +
                           withTenth(verdict.run->end - verdict.run->begin) + " s";
  } catch (const Error& error) {
    verdict.finding.seen = error.what();
    verdict.finding.remedy = error.remedy();
  }
  return verdict;
}

Finding judgeOverlap(std::size_t pairs, const std::vector<SustainedRun>& runs, AllPairs& together) {
  Finding finding{"all-pairs", "", Outcome::notObservable, "all pairs move data at the same time",
                  {},          {}};
  if (runs.size() < pairs) {
    finding.seen = std::to_string(pairs - runs.size()) + " of " + std::to_string(pairs) +
                   " pairs did not complete";
    finding.remedy = "resolve the failed checks of these pairs, then verify again";
    return finding;
  }
  // All pairs move data between the last begin and the first end.
  double lastBegin = 0;
  double firstEnd = std::numeric_limits<double>::max();
  together.shortestSeconds = std::numeric_limits<double>::max();
  for (const SustainedRun& run : runs) {
    lastBegin = std::max(lastBegin, run.begin);
    firstEnd = std::min(firstEnd, run.end);
    together.shortestSeconds = std::min(together.shortestSeconds, run.end - run.begin);
  }
  together.overlapSeconds = std::max(0.0, firstEnd - lastBegin);
  // The sum of the rates that each pair reached alone, for comparison.
  double alone = 0;
  for (const PairRate& rate : together.pairs) {
    alone += rate.alone;
  }
  const std::string overlap = withTenth(together.overlapSeconds) + " s";
  if (together.overlapSeconds < together.shortestSeconds / 2) {
    finding.seen = "all pairs moved data at the same time for only " + overlap + " of " +
                   withTenth(together.shortestSeconds) + " s";
    finding.remedy = "verify again with a longer --sustain";
    return finding;
  }
  finding.outcome = Outcome::passed;
  finding.seen = std::to_string(pairs) + (pairs == 1 ? " pair: " : " pairs: ") +
                 withTenth(together.aggregate()) + " Gb/s at the same time for " + overlap +
                 "; the sum of each alone is " + withTenth(alone) + " Gb/s";
  return finding;
}

namespace {

// Runs the transfer of each pair in a thread of its own, until all have ended.
std::vector<std::future<PairReports>> runTogether(const std::vector<WorkingPair>& pairs,
                                                  const std::vector<Transfer>& transfers,
                                                  const VerifyPlan& plan) {
  std::vector<std::future<PairReports>> runs;
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    // Shared, because a Task can be copied and a promise cannot.
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
  return runs;
}

}  // namespace

void moveTogether(const std::vector<WorkingPair>& pairs, const std::string& memory,
                  const VerifyPlan& plan, VerifyReport& report) {
  // Counters from before the first transfer begins.
  std::vector<std::vector<Counted>> before;
  std::vector<Transfer> transfers;
  for (const WorkingPair& pair : pairs) {
    before.push_back(countedAt(pair.initiator, pair.target));
    transfers.push_back(transferOf(pair, memory, plan));
  }
  auto runs = runTogether(pairs, transfers, plan);

  AllPairs together{memory, {}, 0, 0};
  std::vector<SustainedRun> sustained;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    TogetherVerdict verdict = judgeTogether(transfers[i], runs[i]);
    report.findings.push_back(verdict.finding);
    if (!verdict.run) {  // judgeOverlap counts the runs
      continue;
    }
    judgeCounters(std::move(before[i]), "all at once", verdict.claimed, report.findings);
    sustained.push_back(*verdict.run);
    together.pairs.push_back({transfers[i].subject, aloneRate(report.figures, transfers[i]),
                              verdict.run->gigabitsPerSecond});
  }
  report.findings.push_back(judgeOverlap(pairs.size(), sustained, together));
  report.allPairs.push_back(std::move(together));
}

}  // namespace vfpass::verify
