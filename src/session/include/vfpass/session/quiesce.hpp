#pragma once

#include "vfpass/plan.hpp"
#include "vfpass/session/command_session.hpp"

namespace vfpass::session {

/// Checks through the guest agent that the running guest does not use the devices that the plan
/// unplugs. Throws (refused) if it does, and (unverified) if that cannot be determined. With
/// `force` it only prints a warning and does not contact the agent.
void requireUnused(Session& session, const Plan& plan, bool force);

}  // namespace vfpass::session
