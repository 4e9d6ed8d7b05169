#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "data_path.hpp"
#include "judge_pair.hpp"

namespace vfpass::verify {

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
  std::uint64_t claimedBytes = 0;
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
  PairEnd initiator;
  PairEnd target;
};

/// Moves data through all pairs at the same time, with memory of this kind at both ends (`host`,
/// `gpu`), and adds findings and rates to the report. Each pair has a thread of its own, which only
/// asks the agents; counters are read and results judged in this one. If a checkpoint of the agents
/// throws, every thread cleans up, and the exception leaves this function.
void moveTogether(const std::vector<WorkingPair>& pairs, const std::string& memory,
                  const VerifyPlan& plan, VerifyReport& report);

}  // namespace vfpass::verify
