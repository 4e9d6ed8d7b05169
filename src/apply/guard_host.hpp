#pragma once

#include <optional>

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

/// The PF whose VF count, eswitch mode or link the action sets; nullopt for other actions.
std::optional<PciAddress> pfOfHostAction(const Action& action);

/// True for an interrupted `host apply` if a VM has started on its VFs since (prepare does not need
/// the host settings to be recovered). Nobody may roll back the rest of it then.
bool isOvertaken(const Plan& plan, Tools& tools);

}  // namespace vfpass::apply
