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

std::string NetlinkPort::query(const std::string& request) {
  return exchangeNetlink(NETLINK_ROUTE, request, reading(), deadline_);
}

ExchangePurpose NetlinkPort::reading() const { return {name_, "reading VF attributes"}; }

VfTable NetlinkPort::read() {
  const std::string reply = query(linkQuery(interfaceIndex_, ++sequence_));
  if (auto table = parseLinkReply(reply, interfaceIndex_, infiniband_)) {
    return *table;
  }
  const auto refusal = parseAcknowledgement(reply);
  if (refusal && refusal->error == EMSGSIZE) {
    return {};  // some kernels fail instead of letting the VF list wrap: nothing is observable
  }
  throwNoData(reading(), reply);
}

VfTrafficTable NetlinkPort::readTraffic() {
  const std::string reply = query(trafficQuery(interfaceIndex_, ++sequence_));
  return parseTrafficReply(reply, interfaceIndex_).value_or(VfTrafficTable{});
}

VfStatisticsTable NetlinkPort::readStatistics() {
  const std::string reply = query(trafficQuery(interfaceIndex_, ++sequence_));
  return parseStatisticsReply(reply, interfaceIndex_).value_or(VfStatisticsTable{});
}

Acknowledgement NetlinkPort::set(const std::vector<VfRequest>& requests) {
  const auto messages = linkChanges(interfaceIndex_, sequence_ + 1, requests);
  sequence_ += static_cast<std::uint32_t>(messages.size());
  for (const std::string& message : messages) {
    const Acknowledgement answer =
        sendChange(NETLINK_ROUTE, message, {name_, "setting VF attributes", pf_}, deadline_);
    if (answer.error != 0) {
      return answer;
    }
  }
  return {};
}

}  // namespace vfpass::host
