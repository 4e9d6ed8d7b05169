#pragma once

#include <string>
#include <vector>

#include "holder_gate.hpp"

namespace vfpass::apply {

/// Performs one inverse of a plan's step after checking for holders. If somebody else now uses or
/// leases one of the VFs that the plan created, these stay, with a warning, and only the probing
/// state is restored. Throws Error if another device is held: the step then stays in the journal.
void rollBackAction(const Action& inverse, const Plan& plan, HolderGate& gate, Tools& tools,
                    std::vector<std::string>& warnings);

}  // namespace vfpass::apply
