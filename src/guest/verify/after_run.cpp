#include "after_run.hpp"

#include <nlohmann/json.hpp>

#include "judge_guest.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/error.hpp"

namespace vfpass::verify {

std::optional<GuestView> readErrors(agent::Agent& agent, const agent::PlacedProbe& probe) {
  try {
    // Also if the deadline of the run has passed, because the log may have the reason.
    agent::Agent limited = agent.withinAtMost(deadlines::errorCounters);
    limited.allowAtLeast(deadlines::errorCounters);
    return readGuestView(runProbe(limited, probe, {"errors"}));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<Finding> judgeAfterRun(const std::vector<UsedPort>& ports, const GuestView& before,
                                   const std::optional<GuestView>& after) {
  std::vector<Finding> findings;
  for (const UsedPort& each : ports) {
    if (auto found = judgeRdmaErrors(each.subject, each.port, before, after ? &*after : nullptr)) {
      findings.push_back(std::move(*found));
    }
  }
  return findings;
}

}  // namespace vfpass::verify
