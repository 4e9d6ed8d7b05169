#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <unordered_set>

#include "schedule/run.hpp"

namespace vfpass::crash {

/// Some of the steps of an actor.
struct Steps {
  long first = 0;
  long every = 1;
};

/// Runs schedules and counts how they end. A schedule that ends with a fault is shrunk and printed
/// with its log.
class Explorer {
 public:
  /// `twice`: each schedule is repeated and has to do the same again.
  Explorer(std::filesystem::path scratch, bool twice);

  /// Random schedules, one for each seed from this one, for a number of runs or until the time is
  /// over.
  void explore(std::uint32_t seed, long runs, std::chrono::seconds duration);
  /// Every order in which one of two actions stands still at a step until the other has ended.
  void explorePairs(unsigned part, unsigned parts, Steps steps);
  /// Prints the whole log.
  void replay(const Schedule& schedule);

  void print() const;
  [[nodiscard]] long violations() const { return violations_; }

 private:
  const HostSetUp& hostOf(const Schedule& schedule) const;
  Outcome run(const Schedule& schedule, const Chooser& chooser);
  void judge(Schedule schedule, const Outcome& outcome, const std::string& origin);
  void count(const Outcome& outcome);
  Schedule randomActors(std::mt19937& random) const;
  void explorePair(const Schedule& pair, Steps steps);

  std::filesystem::path scratch_;
  bool twice_;
  std::vector<HostSetUp> hosts_;
  std::unordered_set<std::uint64_t> traces_;
  std::map<std::string, long> counts_;
  long runs_ = 0;
  long steps_ = 0;
  long violations_ = 0;
};

}  // namespace vfpass::crash
