#pragma once

#include "verification.hpp"

namespace vfpass::commands {

/// The plan for one VM, without its GPUs.
verify::VerifyPlan verifyPlanFor(Session& session, const DomainDescription& domain,
                                 const VerifyRequest& request);

/// The time for the whole verification.
std::chrono::seconds timeoutOf(const VerifyRequest& request, const verify::VerifyPlan& plan);

/// Returns when the guest agent answers, or `wait` has passed.
void waitForAgent(Session& session, Hypervisor& hypervisor, const DomainDescription& domain,
                  std::chrono::seconds wait);

verify::VerifyWatch watchOf(Session& session);

/// For agents: updates the progress line, and throws Cancelled if a stop was requested.
agent::Agent::Checkpoint checkpointOf(Session& session);

/// With request.peer, on this host or another one.
VerifyReport verifyWithPeer(Session& session, const DomainDescription& domain,
                            const VerifyRequest& request);

/// Adds the report to those kept for its VM.
void keepReport(Session& session, const VerifyReport& report);

/// The time now as in a report: ISO 8601, UTC.
std::string reportTime();

/// The mapping's `verify:` block; defaults without a mapping.
VerifyPolicy verifyPolicyOf(Session& session, const DomainDescription& domain);

}  // namespace vfpass::commands
