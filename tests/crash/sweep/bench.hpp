#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "sweep/experiment.hpp"
#include "sweep/reference.hpp"
#include "sweep/report.hpp"

namespace vfpass::crash {

/// One scenario on which experiments run. Every point starts from the same state.
class Bench {
 public:
  Bench(Scenario scenario, std::filesystem::path scratch, Report& report);

  /// The number of points at which the fault of an experiment can happen.
  long points(const Experiment& experiment);

  /// Runs one point, from 1. `second`: only the kill at this change of `recover`; 0: all of them.
  void run(const Experiment& experiment, long point, long second = 0);

 private:
  /// The states that are right after recovery.
  struct Expectation {
    std::string before;
    std::string after;
    std::set<std::string> others;  ///< without attributes of idle VFs
    bool kernel = true;
  };

  [[nodiscard]] Expectation oldOrNew(const std::set<std::string>& others) const;
  [[nodiscard]] Expectation afterReboot() const;
  [[nodiscard]] bool applies(const Experiment& experiment) const;

  void continueAfter(const Experiment& experiment, World& world, const Result& result, long point,
                     long second);
  void checkSameCommand(World& world, std::string story);
  void checkReboot(World& world, const std::string& story);
  void checkPowerFailure(World& world, const std::string& story, std::uint32_t variant, long point);
  void checkStart(World& world, std::string story);
  void checkStop(World& world, std::string story);
  void checkNestedKills(const World& world, const std::string& story, long second);
  void recoverTooEarly(World& world, std::string story);

  /// Recovers twice: the first time leads to an expected state, the second one changes nothing.
  void checkRecovery(World& world, std::string story, const Expectation& expected);
  void checkState(const World& world, const std::string& story, const Expectation& expected);
  void checkSecondRecovery(World& world, const std::string& story);

  /// Checks the exit status of a command that failed or tolerated a fault, then recovers.
  void judge(World& world, const Result& result);
  void judgeSuccess(const World& world, const std::string& story);
  [[nodiscard]] std::string endOf(const World& world) const;

  void violation(const std::string& kind, const std::string& story);

  Scenario scenario_;
  std::filesystem::path scratch_;
  Report& report_;
  World base_;
  Reference reference_;
  std::map<std::string, long> points_;  // by experiment
  Place place_;                         // of the current point
};

}  // namespace vfpass::crash
