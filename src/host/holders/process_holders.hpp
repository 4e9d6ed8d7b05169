#pragma once

#include <vector>

#include "holders/function_facts.hpp"
#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Processes that use the function through VFIO, guarded helpers whose write to it (or to the PF of
/// a VF) is still pending in the kernel, and one `unknown` if not all of /proc could be read.
std::vector<Holder> processHolders(const Root& root, const FunctionFacts& function,
                                   const ProcessList& list);

/// Uses of the function's block devices.
std::vector<Holder> blockHolders(const Root& root, const FunctionFacts& function,
                                 const MountTable& mounts, const std::vector<Process>& processes);

}  // namespace vfpass::host
