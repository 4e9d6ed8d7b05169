#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data_path.hpp"
#include "judge_pair.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::verify {

/// Indices of leases.
using VfGroup = std::vector<std::size_t>;

/// Divides the VFs into groups that share neither a PF nor a GPU, so that measurements of different
/// groups do not compete for a port or for a GPU's PCI Express link. `gpus`: assignGpus(). Groups
/// and their members are in the leases' order. Pure.
std::vector<VfGroup> independentVfs(const std::vector<Lease>& leases,
                                    const std::map<std::string, std::vector<std::size_t>>& gpus);

/// How many groups are verified at the same time. A transfer keeps two of the guest's processors
/// busy, one for each end. `vcpus` 0: unknown, and then one group at a time. At least 1.
std::size_t concurrentGroups(std::size_t groups, unsigned vcpus);

/// A part of a verification that runs in a thread of its own. It uses copies of the agents with
/// this checkpoint (Agent::withCheckpoint), and must not throw.
using Task = std::function<void(const agent::Agent::Checkpoint& checkpoint)>;

/// Runs the tasks, at most `workers` at the same time, and returns when all have ended. Meanwhile
/// calls `checkpoint` in this thread. If that throws, no further task starts, the running ones' own
/// checkpoints throw once, and the exception leaves this function after the last of them.
void runConcurrently(const std::vector<Task>& tasks, std::size_t workers,
                     const agent::Agent::Checkpoint& checkpoint);

/// A probe's report on sustained transfers. The times are seconds of the initiating guest's
/// CLOCK_MONOTONIC.
struct SustainedRun {
  double begin = 0;
  double end = 0;
  double gigabitsPerSecond = 0;
};

struct TogetherVerdict {
  Finding finding;
  std::optional<SustainedRun> run;  ///< only if the finding has passed
  ClaimedBytes claimed = {};        ///< by the initiator; all transfers are writes
};

/// Judges the reports of one pair among several that moved data at the same time: all checked bytes
/// correct, as judgePairTransfer(), and sustained transfers with times and a rate. An exception in
/// `reports` is a finding that is not observable.
TogetherVerdict judgeTogether(const Transfer& transfer, std::future<PairReports>& reports);

/// Whether all `pairs` pairs moved data at the same time for at least half of the shortest run.
/// Sets the overlap in `together`. Pure.
Finding judgeOverlap(std::size_t pairs, const std::vector<SustainedRun>& runs, AllPairs& together);

/// A pair of VFs between which data has been moved alone.
struct WorkingPair {
  std::string subject;
  PathEnd initiator;
  PathEnd target;
};

/// Moves data through all pairs at the same time, with memory of this kind at both ends (`host`,
/// `gpu`), and adds findings and rates to the report. Each pair has a thread of its own, which only
/// asks the agents; counters are read and results judged in this one. If a checkpoint of the agents
/// throws, every thread cleans up, and the exception leaves this function.
void moveTogether(const std::vector<WorkingPair>& pairs, const std::string& memory,
                  const VerifyPlan& plan, VerifyReport& report);

}  // namespace vfpass::verify
