#include "sriov/vf_port.hpp"

#include <linux/netlink.h>

#include <cerrno>
#include <utility>

#include "netlink/netlink_exchange.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {

NetlinkPort::NetlinkPort(int interfaceIndex, bool infiniband, std::string name,
                         std::chrono::milliseconds deadline, std::optional<PciAddress> pf)
    : interfaceIndex_(interfaceIndex),
      infiniband_(infiniband),
      name_(std::move(name)),
      deadline_(deadline),
      pf_(pf) {}

std::string NetlinkPort::exchange(const std::string& request, const char* verb,
                                  std::optional<PciAddress> changed) {
  return exchangeNetlink(NETLINK_ROUTE, request,
                         {name_, std::string(verb) + " VF attributes", changed}, deadline_);
}

VfTable NetlinkPort::read() {
  const std::string reply = exchange(linkQuery(interfaceIndex_, ++sequence_), "reading");
  if (auto table = parseLinkReply(reply, interfaceIndex_, infiniband_)) {
    return *table;
  }
  const auto refusal = parseAcknowledgement(reply);
  if (refusal && refusal->error == EMSGSIZE) {
    return {};  // some kernels fail instead of letting the VF list wrap: nothing is observable
  }
  throw Error(name_ + ": reading VF attributes over netlink failed: " +
              (refusal ? errnoText(refusal->error) : "invalid reply from the kernel"));
}

VfTrafficTable NetlinkPort::readTraffic() {
  const std::string reply = exchange(trafficQuery(interfaceIndex_, ++sequence_), "reading");
  return parseTrafficReply(reply, interfaceIndex_).value_or(VfTrafficTable{});
}

Acknowledgement NetlinkPort::set(const std::vector<VfRequest>& requests) {
  const auto messages = linkChanges(interfaceIndex_, sequence_ + 1, requests);
  sequence_ += static_cast<std::uint32_t>(messages.size());
  for (const std::string& message : messages) {
    const auto answer = parseAcknowledgement(exchange(message, "setting", pf_));
    if (!answer) {
      throw Error(name_ +
                  ": setting VF attributes over netlink failed: invalid reply from the kernel");
    }
    if (answer->error != 0) {
      return *answer;
    }
  }
  return {};
}

}  // namespace vfpass::host
