#pragma once

#include <optional>

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

/// The PF whose VF count, eswitch mode or link the action sets; nullopt for every other action.
std::optional<PciAddress> pfOfHostAction(const Action& action);

/// True for an interrupted `host apply` on whose VFs a VM was started since: prepare needs no
/// recovery of the host's settings. What is left of it is not for anybody to roll back then.
bool isOvertaken(const Plan& plan, Tools& tools);

}  // namespace vfpass::apply
