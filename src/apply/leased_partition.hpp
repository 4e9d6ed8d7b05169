#pragma once

#include "vfpass/apply/run.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::apply {

/// Kernel::setPartition() for the leases of these GPUs: records in them that their partition is
/// activated, and deactivates nothing else, such as a partition that was active before the start.
void setPartition(const SetPartition& action, Tools& tools);

}  // namespace vfpass::apply
