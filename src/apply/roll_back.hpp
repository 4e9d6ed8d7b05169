#pragma once

#include <string>
#include <vector>

#include "holder_gate.hpp"

namespace vfpass::apply {

/// Performs one inverse of a plan's step, after asking who holds the devices. VFs that the plan
/// created stay, with a warning, when somebody else uses or leases one of them by now; only probing
/// is set back then. Throws Error where another device is held: the step stays in the journal.
void rollBackAction(const Action& inverse, const Plan& plan, HolderGate& gate, Tools& tools,
                    std::vector<std::string>& warnings);

}  // namespace vfpass::apply
