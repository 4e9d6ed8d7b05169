#pragma once

#include <string>
#include <vector>

#include "rdma/ip_address.hpp"
#include "rdma/rdma_devices.hpp"

namespace vfpass::probe {

/// The interfaces over which rdma_cm reaches a port: on RoCE those of its GIDs, also VLANs; on
/// InfiniBand the IPoIB interfaces of its PCI function.
std::vector<std::string> netdevsOf(const SysfsReader& sysfs, const RdmaDevice& device,
                                   const RdmaPort& port);

/// The port's own IP addresses. Empty if it has none, or if there is no such port.
std::vector<IpAddress> portAddresses(const SysfsReader& sysfs, const std::string& device, int port);

}  // namespace vfpass::probe
