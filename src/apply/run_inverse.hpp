#pragma once

#include <optional>
#include <string>
#include <vector>

#include "holder_gate.hpp"

namespace vfpass::apply {

/// The part of an action on devices that exist (onExistingDevices()) and that no other domain has
/// leased; nullopt if nothing is left. While the plan's writer was dead, nobody held the locks of
/// its devices. The action may be a step or an inverse. Not for host plans, which also change VFs
/// that are leased and idle.
std::optional<Action> onOwnDevices(const Action& action, const Plan& plan, Tools& tools);

/// Performs one inverse of a plan's step after checking for holders. If somebody else now uses or
/// leases one of the VFs that the plan created, these stay, with a warning, and only the probing
/// state is restored. Throws Error if another device is held: the step then stays in the journal.
void rollBackAction(const Action& inverse, const Plan& plan, HolderGate& gate, Tools& tools,
                    std::vector<std::string>& warnings);

}  // namespace vfpass::apply
