#pragma once

#include <string>
#include <vector>

#include "world/fault.hpp"

namespace vfpass::crash {

/// What follows the fault, and what has to hold then.
enum class Continuation {
  recover,         ///< `vfpass recover`, twice: the state is old or new
  again,           ///< the same command: the state is new
  reboot,          ///< a reboot, then as `recover`
  powerFailure,    ///< as `reboot`, but what was not synced is lost, or lost in part
  start,           ///< the domain starts, if it does not run, and stops, then as `recover`
  nestedKills,     ///< `vfpass recover` is killed at every change, a running domain stops or goes
                   ///< on, then as `recover`
  judge,           ///< the command has ended by itself: its exit status has to be right
  recoverTooEarly  ///< `vfpass recover` while a write is pending, then as `recover`
};

/// One fault at each of the points of a scenario, and one continuation.
struct Experiment {
  std::string name;
  std::string sweep;  ///< the option that includes it
  Continuation continuation = Continuation::recover;
  Fault fault;                ///< without `at`
  bool failsMemory = false;   ///< the points are allocations of memory
  std::uint32_t variant = 0;  ///< of a power failure
};

const std::vector<Experiment>& allExperiments();

/// The options that select experiments.
std::vector<std::string> allSweeps();

/// The allocation that fails at a point: points lie closer together at the beginning.
long allocationAt(long point);

}  // namespace vfpass::crash
