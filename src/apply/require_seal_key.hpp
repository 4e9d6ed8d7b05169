#pragma once

#include "vfpass/apply/tools.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::apply {

/// Makes the host's seal key if it has none and a step or inverse of the plan writes leases into
/// a domain. Called before the first step, so that nothing has to be rolled back if it fails. Other
/// plans work without a key, and where /etc/vfpass is read-only (a systemd unit with
/// ProtectSystem=strict).
void requireSealKey(const Plan& plan, const Tools& tools);

}  // namespace vfpass::apply
