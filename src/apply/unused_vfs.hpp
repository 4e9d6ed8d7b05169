#pragma once

#include <vector>

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

/// The steps that remove VFs which nobody needs after this plan, and which the plan does not
/// remove: another domain had a lease of the same PF when it was made, and has ended it since. Two
/// domains that are detached at the same time would otherwise both leave the VFs to the other one.
/// Call it under the PF locks, before the plan ends its leases.
std::vector<Step> findUnusedVfs(const Plan& plan, Tools& tools);

}  // namespace vfpass::apply
