#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "verdict.hpp"

namespace vfpass::probe {

/// What one side's owner of memory did and what that cost, over all cycles.
struct OwnerWork {
  CheckResult result;
  double prepareSeconds = 0;
  double checkSeconds = 0;
};

/// Counts, described corruptions, and costs.
nlohmann::json toJson(const OwnerWork& work);

/// Adds the seconds that `work` takes to `total`.
void addSeconds(double& total, const std::function<void()>& work);

/// Cycle number `cycle` of a run; cycle 0 warms up.
MessageRange cycleRange(const Ring& ring, std::uint64_t cycle, std::uint64_t count);

}  // namespace vfpass::probe
