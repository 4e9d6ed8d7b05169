#pragma once

#include <chrono>
#include <cstdint>
#include <string>
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

/// A process or kernel module that owns a resource of an RDMA device.
struct RdmaUser {
  unsigned process = 0;     ///< 0: the kernel, or a process that is not visible
  std::string description;  ///< `process 4711 (ib_write_bw)`; printable
};

/// Users of an RDMA device: owners of a context, queue pair, memory region or protection domain.
struct RdmaUse {
  std::vector<RdmaUser> users;
  std::string error;  ///< the reason why the list may be incomplete; empty: it is complete
};

/// Users of each of these devices (the kernel's numbers). Where programs have contexts, only they
/// are listed.
std::vector<RdmaUse> readRdmaUse(const Root& root, const std::vector<std::uint32_t>& numbers,
                                 std::chrono::milliseconds deadline);

/// Descriptions of the users of one device. Throws Error when they are not observable, so that the
/// device is not mistaken for unused.
std::vector<std::string> rdmaUsers(const Root& root, std::uint32_t number,
                                   std::chrono::milliseconds deadline);

}  // namespace vfpass::host
