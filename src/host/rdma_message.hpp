#pragma once

#include <cstdint>
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
enum class RdmaResource { queuePair, protectionDomain, context };

/// RDMA_NLDEV_CMD_RES_*_GET: one device's, as a dump.
std::string rdmaResourceQuery(RdmaResource resource, std::uint32_t number);

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

/// How a dump ended: errno, 0 for a whole one. EBADMSG when it does not end at all.
int dumpError(std::string_view dump);

}  // namespace vfpass::host
