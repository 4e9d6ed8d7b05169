#pragma once

#include <vector>

#include "holders/function_facts.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Processes that have a character device of one of these functions open: a GPU's
/// (`/dev/nvidia0`, `/dev/dri/card1`), a clock's (`/dev/ptp3`). RDMA's and VFIO's are left to those
/// who know more of them. Of kind `unknown`, because no other tells of such users.
std::vector<Holder> deviceFileHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                      const std::vector<Process>& processes);

}  // namespace vfpass::host
