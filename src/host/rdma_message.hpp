#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass::host {

/// RDMA netlink (NETLINK_RDMA, RDMA_NL_NLDEV), as rdma/rdma_netlink.h of the kernel has it.

/// RDMA_NLDEV_CMD_GET: every RDMA device, as a dump.
std::string rdmaDevicesQuery();
/// RDMA_NLDEV_CMD_NEWLINK for a link of type `rxe`; DELLINK by the device's number. Both are to be
/// acknowledged.
std::string softRoceAddition(const std::string& name, const std::string& netdev);
std::string rdmaLinkRemoval(std::uint32_t number);

/// Things that their owner has open in a device. A context is an open uverbs file (Linux 5.14).
enum class RdmaResource { queuePair, protectionDomain, memoryRegion, context };

/// RDMA_NLDEV_CMD_RES_*_GET: one device's, as a dump.
std::string rdmaResourceQuery(RdmaResource resource, std::uint32_t number);

/// RDMA_NLDEV_CMD_SYS_GET: settings of the whole subsystem, one datagram.
std::string rdmaSystemQuery();
/// Whether each network namespace sees all RDMA devices; nullopt when the reply does not say.
std::optional<bool> parseSharesDevices(std::string_view reply);

struct NumberedDevice {
  std::uint32_t number = 0;
  std::string name;

  bool operator==(const NumberedDevice&) const = default;
};

/// Who has a resource: a process, or a part of the kernel by its module's name.
struct RdmaOwner {
  unsigned process = 0;  ///< 0: the kernel
  std::string module;

  auto operator<=>(const RdmaOwner&) const = default;
};

/// What a dump says; damaged parts are left out.
std::vector<NumberedDevice> parseRdmaDevices(std::string_view dump);
std::vector<RdmaOwner> parseRdmaOwners(std::string_view dump, RdmaResource resource);

}  // namespace vfpass::host
