#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::host {

/// Every RDMA device in sysfs, by name, without the kernel's numbers.
std::vector<RdmaLink> readRdmaLinks(const Root& root);

/// Every RDMA device, by name. The kernel's numbers come from RDMA netlink, everything else from
/// sysfs: only devices of rdma_rxe have a file `parent`, which contains the netdev's name. Throws
/// Error.
std::vector<RdmaLink> readRdmaLinks(const Root& root, std::chrono::milliseconds deadline);

/// The reason why the netdev cannot carry a SoftRoCE link; empty: it can. On the running system
/// only.
std::string softRoceFault(const Root& root, const std::string& netdev);

/// Creates the link, loading the required modules, and returns its number. A link that does not
/// read back correctly is removed again. Throws Error.
std::uint32_t addSoftRoceLink(const Root& root, const std::string& name, const std::string& netdev,
                              std::chrono::milliseconds deadline);

/// Removes the device with this number, even if it was renamed; does nothing when it no longer
/// exists. The kernel removes it even while it is in use: check rdmaUsers() first. Throws Error.
void removeSoftRoceLink(const Root& root, const RdmaLink& link, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
