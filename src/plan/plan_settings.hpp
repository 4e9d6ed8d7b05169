#pragma once

#include <string>
#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// When attach changes the persistent configuration, assigns the edits of the settings that it
/// applies to the domain's leases. Lists the settings that the domain still lacks.
void assignSettings(const AttachInput& input, AttachDecision& decision);

/// Names of the settings whose elements `wanted` adds, changes or removes.
std::vector<std::string> changedSettings(const AttachInput& input,
                                         const std::vector<Lease>& wanted);

}  // namespace vfpass::plan
