#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "scenarios/scenario.hpp"
#include "sweep/report.hpp"

namespace vfpass::crash {

/// A state of a host, as different continuations compare it.
struct HostState {
  explicit HostState(const World& world);
  std::string complete;
  std::string withoutKernel;
  std::string withoutIdleAttributes;
};

/// The states before and after the command of a scenario that nothing disturbs.
struct Reference {
  HostState before;
  HostState after;
  /// What is left by `recover`, and by a start and stop of the domain, in either state. Without
  /// attributes of idle VFs.
  std::set<std::string> recovered;
  std::set<std::string> started;
};

/// Runs the scenario's command on copies of its host. Throws if it fails.
Reference readReference(const Scenario& scenario, const World& base,
                        const std::filesystem::path& scratch, Report& report);

/// Reports effects that were not yet in the journal on disk.
void reportUnjournaled(Report& report, const Result& result, const Place& place);

}  // namespace vfpass::crash
