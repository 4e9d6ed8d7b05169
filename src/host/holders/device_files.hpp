#pragma once

#include <vector>

#include "holders/function_facts.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Processes that have a character device of one of these functions open. For GPUs and NVSwitches
/// the kind is `gpu` and the description says what the process is; for all other functions the kind
/// is `unknown`.
std::vector<Holder> deviceFileHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                      const std::vector<Process>& processes);

}  // namespace vfpass::host
