#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::host {

/// RDMA netlink (NETLINK_RDMA, RDMA_NL_NLDEV), as defined in the kernel's rdma/rdma_netlink.h.

/// RDMA_NLDEV_CMD_GET: every RDMA device, as a dump.
std::string rdmaDevicesQuery();
/// RDMA_NLDEV_CMD_NEWLINK for a link of type `rxe`; DELLINK by the device's number. Both with
/// NLM_F_ACK.
std::string softRoceAddition(const std::string& name, const std::string& netdev);
std::string rdmaLinkRemoval(std::uint32_t number);

/// Resources of a device that have an owner. A context is an open uverbs file (Linux 5.14).
enum class RdmaResource { queuePair, protectionDomain, memoryRegion, context };

/// RDMA_NLDEV_CMD_RES_*_GET: resources of one device, as a dump.
std::string rdmaResourceQuery(RdmaResource resource, std::uint32_t number);

/// RDMA_NLDEV_CMD_SYS_GET: settings of the subsystem, in one datagram.
std::string rdmaSystemQuery();
/// Whether all RDMA devices are visible in every network namespace; nullopt when the reply does not
/// contain it.
std::optional<bool> parseSharesDevices(std::string_view reply);

struct NumberedDevice {
  std::uint32_t number = 0;
  std::string name;

  bool operator==(const NumberedDevice&) const = default;
};

/// The owner of a resource: a process, or a kernel module by its name.
struct RdmaOwner {
  unsigned process = 0;  ///< 0: the kernel
  std::string module;

  auto operator<=>(const RdmaOwner&) const = default;
};

/// Parse a dump; malformed parts are skipped.
std::vector<NumberedDevice> parseRdmaDevices(std::string_view dump);
std::vector<RdmaOwner> parseRdmaOwners(std::string_view dump, RdmaResource resource);

}  // namespace vfpass::host
