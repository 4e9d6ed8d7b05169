#pragma once

#include <string>
#include <vector>

#include "vfpass/apply/tools.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {

/// Runs a plan that was made while `locks` (those of lockedPfs(plan)) were held. Each step is
/// journaled before it runs. The locks are released around steps on domains; after they are taken
/// again, the leases must still be those of the plan.
///
/// If a step of attach or prepare fails, all steps before it are rolled back and the Error of the
/// step is thrown. Detach and release do not roll back: the remaining steps stay in the journal for
/// recover(), and the Error says so. If Tools::checkStop() throws, the steps are rolled back, too,
/// and the Cancelled says so. Returns warnings for the user.
std::vector<std::string> run(const Plan& plan, Tools& tools, std::vector<state::FileLock> locks);

}  // namespace vfpass::apply
