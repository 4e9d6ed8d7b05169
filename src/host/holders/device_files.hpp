#pragma once

#include <vector>

#include "holders/function_facts.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Processes that have a character device of one of these functions open. Of kind `gpu` for GPUs
/// and NVSwitches, with what the process is; of kind `unknown` for all else, because no other tells
/// of such users.
std::vector<Holder> deviceFileHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                      const std::vector<Process>& processes);

}  // namespace vfpass::host
