#include "netlink/address_message.hpp"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>

#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

// For a point-to-point IPv4 link IFA_LOCAL contains the address and IFA_ADDRESS the peer; IPv6 only
// has IFA_ADDRESS.
nlattr* findAddress(nlmsghdr* header) {
  nlattr* local = nlmsg_find_attr(header, sizeof(ifaddrmsg), IFA_LOCAL);
  return local != nullptr ? local : nlmsg_find_attr(header, sizeof(ifaddrmsg), IFA_ADDRESS);
}

std::string textOf(const ifaddrmsg& head, const nlattr* address) {
  const int length = head.ifa_family == AF_INET6 ? 16 : 4;
  if (address == nullptr || nla_len(address) < length) {
    return {};
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_ntop(head.ifa_family, nla_data(address), text.data(), text.size()) == nullptr) {
    return {};
  }
  return std::string(text.data()) + "/" + std::to_string(head.ifa_prefixlen);
}

std::string addressIn(std::string_view bytes, int interfaceIndex) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(ifaddrmsg));
  if (header == nullptr || header->nlmsg_type != RTM_NEWADDR) {
    return {};
  }
  ifaddrmsg head{};
  std::memcpy(&head, nlmsg_data(header), sizeof head);
  const bool linkLocal = head.ifa_family == AF_INET6 && head.ifa_scope == RT_SCOPE_LINK;
  const bool isIp = head.ifa_family == AF_INET || head.ifa_family == AF_INET6;
  if (!isIp || linkLocal || head.ifa_index != static_cast<unsigned>(interfaceIndex)) {
    return {};
  }
  return textOf(head, findAddress(header));
}

}  // namespace

std::string addressesQuery() {
  const NetlinkMessage message = newMessage();
  requireRoom(nlmsg_put(message.get(), 0, 1, RTM_GETADDR, 0, NLM_F_REQUEST | NLM_F_DUMP) !=
              nullptr);
  ifaddrmsg head{};
  head.ifa_family = AF_UNSPEC;
  requireRoom(nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO) == 0);
  return bytesOf(message);
}

std::vector<std::string> parseAddresses(std::string_view dump, int interfaceIndex) {
  std::vector<std::string> addresses;
  while (dump.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, dump.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > dump.size()) {
      break;
    }
    if (auto address = addressIn(dump.substr(0, header.nlmsg_len), interfaceIndex);
        !address.empty()) {
      addresses.push_back(std::move(address));
    }
    dump.remove_prefix(std::min(dump.size(), std::size_t{NLMSG_ALIGN(header.nlmsg_len)}));
  }
  return addresses;
}

}  // namespace vfpass::host
