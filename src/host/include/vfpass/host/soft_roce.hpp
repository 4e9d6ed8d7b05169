#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/soft_roce.hpp"

namespace vfpass::host {

/// Every RDMA device, by name, as sysfs shows it: without numbers.
std::vector<RdmaLink> readRdmaLinks(const Root& root);

/// Every RDMA device, by name. The kernel's numbers come over RDMA netlink, the rest from sysfs: of
/// all drivers only rdma_rxe gives its devices a file `parent`, the netdev's name. Throws Error.
std::vector<RdmaLink> readRdmaLinks(const Root& root, std::chrono::milliseconds deadline);

/// Why the netdev cannot carry a SoftRoCE link; empty: it can. On the running system only.
std::string softRoceFault(const Root& root, const std::string& netdev);

/// Makes the link, loading what it needs, and returns its number. What does not read back as wanted
/// is removed again. Throws Error.
std::uint32_t addSoftRoceLink(const Root& root, const std::string& name, const std::string& netdev,
                              std::chrono::milliseconds deadline);

/// Removes the device with this number, whatever its name is by now; nothing to do when it is gone.
/// The kernel takes it away from whoever uses it: ask rdmaUsers() before. Throws Error.
void removeSoftRoceLink(const Root& root, const RdmaLink& link, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
