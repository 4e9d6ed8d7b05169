#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "transfer/verdict.hpp"

namespace vfpass::probe {

/// Work of the memory's owner on one side and its duration, over all cycles.
struct OwnerWork {
  CheckResult result;
  double prepareSeconds = 0;
  double checkSeconds = 0;
};

/// Counts, described corruptions, and durations.
nlohmann::json toJson(const OwnerWork& work);

/// Adds the seconds that `work` takes to `total`.
void addSeconds(double& total, const std::function<void()>& work);

/// The messages of cycle number `cycle`; cycle 0 is the warm-up.
MessageRange cycleRange(const Ring& ring, std::uint64_t cycle, std::uint64_t count);

}  // namespace vfpass::probe
