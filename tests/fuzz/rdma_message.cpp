// RDMA netlink: the first byte selects a reader, the rest is the reply.
// covers: src/host/netlink/rdma_message.cpp src/host/netlink/netlink_message.cpp -wasInterrupted
// -startMessage -putNumber -rdmaDevicesQuery -softRoceAddition -rdmaLinkRemoval -rdmaResourceQuery
// -rdmaSystemQuery -extendedMessage -parseAcknowledgement -namesNoCause -reasonOf
#include "netlink/rdma_message.hpp"

#include <linux/netlink.h>

#include <array>

#include "fuzz/target.hpp"
#include "netlink/netlink_message.hpp"

namespace vfpass::fuzz {
namespace {

constexpr std::array resources{host::RdmaResource::queuePair, host::RdmaResource::protectionDomain,
                               host::RdmaResource::memoryRegion, host::RdmaResource::context};

}  // namespace

void runTarget(std::string_view input) {
  if (input.empty()) {
    return;
  }
  const auto kind = static_cast<unsigned char>(input.front()) % resources.size();
  const std::string_view dump = input.substr(1);
  for (const auto& device : host::parseRdmaDevices(dump)) {
    require(!device.name.empty(), "an RDMA device has a name");
  }
  const auto owners = host::parseRdmaOwners(dump, resources.at(kind));
  require(owners.size() <= dump.size() / NLA_HDRLEN, "an owner has an attribute of its own");
  host::parseSharesDevices(dump);
  const int error = host::dumpError(dump);
  require(error >= 0 && error <= 4095, "the result of a dump is an errno");
}

}  // namespace vfpass::fuzz
