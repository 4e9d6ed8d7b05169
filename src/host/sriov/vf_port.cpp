#include "sriov/vf_port.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "netlink/netlink_exchange.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

constexpr const char* readingAttributes = "reading VF attributes";

// Some kernels fail instead of letting the VF list wrap: nothing is observable then. Nullopt: the
// reply is another error, or invalid.
std::optional<VfTable> tableOf(const std::string& reply, int interfaceIndex, bool infiniband) {
  if (auto table = parseLinkReply(reply, interfaceIndex, infiniband)) {
    return table;
  }
  const auto refusal = parseAcknowledgement(reply);
  return refusal && refusal->error == EMSGSIZE ? std::optional(VfTable{}) : std::nullopt;
}

}  // namespace

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

ExchangePurpose NetlinkPort::reading() const {
  return {name_, readingAttributes, std::nullopt, interfaceIndex_};
}

VfTable NetlinkPort::read() {
  const std::string reply = query(linkQuery(interfaceIndex_, ++sequence_));
  if (auto table = tableOf(reply, interfaceIndex_, infiniband_)) {
    return *table;
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
    const Acknowledgement answer = sendChange(
        NETLINK_ROUTE, message, {name_, "setting VF attributes", pf_, interfaceIndex_}, deadline_);
    if (answer.error != 0) {
      return answer;
    }
  }
  return {};
}

std::vector<VfAnswer> readVfTables(const std::vector<VfNetdev>& netdevs,
                                   std::chrono::milliseconds deadline) {
  std::vector<NetlinkQuery> queries;
  for (const VfNetdev& netdev : netdevs) {
    queries.push_back({0, NETLINK_ROUTE, linkQuery(netdev.index, 1), false, netdev.index});
  }
  const auto limit = deadline * static_cast<int>(std::max<std::size_t>(netdevs.size(), 1));
  const auto answers = runNetlinkBatch({NetlinkPlace{}}, queries, -1, limit);
  std::vector<VfAnswer> found;
  for (std::size_t i = 0; i < netdevs.size(); ++i) {
    if (answers[i].error == ETIMEDOUT) {
      throwNoReply({netdevs[i].name, readingAttributes}, limit);
    }
    found.push_back({answers[i].error == 0
                         ? tableOf(answers[i].bytes, netdevs[i].index, netdevs[i].infiniband)
                         : std::nullopt,
                     answers[i].error == ENODEV});
  }
  return found;
}

}  // namespace vfpass::host
