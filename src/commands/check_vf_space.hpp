#pragma once

#include <vector>

#include "command_session.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::commands {

/// What the host lacks for the VFs that the plan creates: addresses for their BARs, or bus numbers.
/// The kernel would refuse to create them.
std::vector<plan::Objection> checkVfSpace(Session& session, const Plan& plan);

}  // namespace vfpass::commands
