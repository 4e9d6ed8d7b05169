#pragma once

#include <chrono>
#include <filesystem>
#include <random>
#include <string>

#include "schedule/findings.hpp"
#include "schedule/run.hpp"

namespace vfpass::crash {

/// Some of the steps of an actor.
struct Steps {
  long first = 0;
  long every = 1;
};

/// Some of the seeds from one on.
struct Seeds {
  std::uint32_t first = 0;
  long end = 0;  ///< those before `first + end`
  long every = 1;
};

/// Runs schedules and counts how they end. A schedule that ends with a fault is shrunk and printed
/// with its log.
class Explorer {
 public:
  /// `twice`: each schedule is repeated, and has to do the same again and to end as well.
  Explorer(const std::filesystem::path& scratch, bool twice);

  /// Random schedules, one for each seed, until the time is over.
  void explore(const Seeds& seeds, std::chrono::seconds duration);
  /// Every order in which one of two actions stands still at a step until the other has ended.
  void explorePairs(unsigned part, unsigned parts, Steps steps);
  /// Prints the whole log.
  void replay(const Schedule& schedule);

  [[nodiscard]] const Findings& findings() const { return findings_; }

 private:
  const HostSetUp& hostOf(const Schedule& schedule) const;
  Outcome run(const Schedule& schedule, const Chooser& chooser);
  Outcome repeat(const Schedule& schedule);
  std::string logOf(const Schedule& schedule);
  void judge(Schedule schedule, const Outcome& outcome, const std::string& origin);
  void count(const Outcome& outcome);
  Schedule randomActors(std::mt19937& random) const;
  void explorePair(const Schedule& pair, Steps steps);

  bool twice_;
  std::vector<HostSetUp> hosts_;
  Findings findings_;
};

}  // namespace vfpass::crash
