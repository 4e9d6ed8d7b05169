#pragma once

#include "session.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::cli {

/// Asks the running guest who uses the devices that the plan unplugs. Throws (refused) when
/// somebody does, and (unverified) when the guest does not let us see it; with `force` both are
/// warnings, and no agent that does not answer is waited for.
void requireUnused(Session& session, const Plan& plan, bool force);

}  // namespace vfpass::cli
