#pragma once

#include <string>
#include <vector>

#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// Gives the domain's leases the edits of the settings that attach makes, where it changes the
/// persistent configuration, and tells what the domain still lacks.
void settleSettings(const AttachInput& input, AttachDecision& decision);

/// Names of the settings whose elements `wanted` adds, changes or takes away.
std::vector<std::string> changedSettings(const AttachInput& input,
                                         const std::vector<Lease>& wanted);

}  // namespace vfpass::plan
