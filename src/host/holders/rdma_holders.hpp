#pragma once

#include <chrono>
#include <vector>

#include "holders/function_facts.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Users of the RDMA devices of these functions, in the order of the functions: of the functions'
/// own devices, and of SoftRoCE links on their netdevs. Where users are not observable, the holder
/// has the kind `unknown`.
std::vector<Holder> rdmaHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                const std::vector<Process>& processes,
                                std::chrono::milliseconds deadline);

/// Processes that have a device file of this RDMA device open (uverbs, umad, issm).
std::vector<Process> processesWithDeviceFiles(const Root& root, const std::string& device,
                                              const std::vector<Process>& processes);

}  // namespace vfpass::host
