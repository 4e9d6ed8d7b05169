#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "judge_device.hpp"
#include "vfpass/agent/probe_program.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// A port through which data was moved.
struct UsedPort {
  std::string subject;  ///< of its findings
  RdmaPort port;
};

/// What the guest reports after the run (`vfpass-probe errors`); only counters and log are set.
/// nullopt: an older probe, or a guest that no longer answers. Takes deadlines::errorCounters at
/// most, also past the agent's own deadline; if libvirt returns no reply, deadlines::agentSync and
/// the clean-up in the guest (deadlines::agentCleanup) more. Throws Cancelled.
std::optional<GuestView> readErrors(agent::Agent& agent, const agent::PlacedProbe& probe);

/// `rdma-errors` of each port. Pure.
std::vector<Finding> judgeAfterRun(const std::vector<UsedPort>& ports, const GuestView& before,
                                   const std::optional<GuestView>& after);

}  // namespace vfpass::verify
