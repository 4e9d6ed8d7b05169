#pragma once

#include <string>
#include <vector>

#include "vfpass/apply/tools.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {

/// Runs a plan that was made while `locks` (those of lockedPfs(plan)) were held. Each step is
/// journaled before it runs. Locks are given up around steps on domains; when taken again, the
/// leases must still be the plan's.
///
/// When a step of attach or prepare fails, everything before it is undone and the step's Error is
/// thrown. Detach and release take nothing back: what is left to do stays in the journal for
/// recover(), and the Error says so. Returns warnings for the user.
std::vector<std::string> run(const Plan& plan, Tools& tools, std::vector<state::FileLock> locks);

}  // namespace vfpass::apply
