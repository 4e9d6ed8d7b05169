#pragma once

#include <chrono>
#include <vector>

#include "holders/function_facts.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Users of the RDMA devices of these functions, in their order: of those that the functions have
/// themselves, and of SoftRoCE links on their netdevs. What cannot be seen is a holder of kind
/// `unknown`.
std::vector<Holder> rdmaHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                const std::vector<Process>& processes,
                                std::chrono::milliseconds deadline);

/// Processes that have a device file of this RDMA device open (uverbs, umad, issm).
std::vector<Process> processesWithDeviceFiles(const Root& root, const std::string& device,
                                              const std::vector<Process>& processes);

}  // namespace vfpass::host
