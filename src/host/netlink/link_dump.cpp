#include "netlink/link_dump.hpp"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <array>

#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

std::optional<Link> parseLink(std::string_view bytes) {
  ReceivedMessage message(bytes);
  nlmsghdr* header = message.header(sizeof(ifinfomsg));
  if (header == nullptr) {
    return std::nullopt;
  }
  const auto find = [&](int type) { return nlmsg_find_attr(header, sizeof(ifinfomsg), type); };
  const auto* information = static_cast<const ifinfomsg*>(nlmsg_data(header));
  Link link;
  link.index = information->ifi_index;
  link.up = (information->ifi_flags & IFF_UP) != 0;
  link.name = textOf(find(IFLA_IFNAME));
  link.kind = textOf(findNested(find(IFLA_LINKINFO), IFLA_INFO_KIND));
  link.master = numberOf<int>(find(IFLA_MASTER)).value_or(0);
  link.lower = numberOf<int>(find(IFLA_LINK)).value_or(0);
  link.lowerNamespace = numberOf<int>(find(IFLA_LINK_NETNSID));
  link.parentBus = textOf(find(IFLA_PARENT_DEV_BUS_NAME));
  link.parentName = textOf(find(IFLA_PARENT_DEV_NAME));
  return link;
}

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

std::string linkDumpQuery() {
  const auto message = startRequest(RTM_GETLINK, NLM_F_DUMP, ifinfomsg{});
  // Exclude VF lists and counters, for which a driver may have to query its firmware.
  requireRoom(nla_put_u32(message.get(), IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) == 0);
  return bytesOf(message);
}

std::string addressDumpQuery() {
  return bytesOf(startRequest(RTM_GETADDR, NLM_F_DUMP, ifaddrmsg{}));
}

std::string namespaceIdQuery(int descriptor) {
  const auto message = startRequest(RTM_GETNSID, 0, rtgenmsg{});
  requireRoom(nla_put_u32(message.get(), NETNSA_FD, static_cast<std::uint32_t>(descriptor)) == 0);
  return bytesOf(message);
}

void addLinks(std::string_view datagram, LinkScope scope, LinkDump& dump) {
  dump.error = dumpError(datagram);
  dump.interrupted = dump.interrupted || wasInterrupted(datagram);
  eachMessage(datagram, [&](const nlmsghdr& header, std::string_view bytes) {
    auto link = header.nlmsg_type == RTM_NEWLINK ? parseLink(bytes) : std::nullopt;
    if (link && link->index > 0 &&
        (scope == LinkScope::all || !link->parentName.empty() || link->lowerNamespace)) {
      dump.links.push_back(std::move(*link));
    }
  });
}

void addAddresses(std::string_view datagram, AddressDump& dump) {
  dump.error = dumpError(datagram);
  dump.interrupted = dump.interrupted || wasInterrupted(datagram);
  eachMessage(datagram, [&](const nlmsghdr& header, std::string_view bytes) {
    if (header.nlmsg_type != RTM_NEWADDR || bytes.size() < sizeof header + sizeof(ifaddrmsg)) {
      return;
    }
    ifaddrmsg address{};
    std::memcpy(&address, bytes.data() + sizeof header, sizeof address);
    if (address.ifa_family != AF_INET6 || address.ifa_scope != RT_SCOPE_LINK) {
      dump.interfaces.insert(static_cast<int>(address.ifa_index));
    }
  });
}

std::optional<int> parseNamespaceId(std::string_view reply) {
  ReceivedMessage message(reply);
  nlmsghdr* header = message.header(sizeof(rtgenmsg));
  if (header == nullptr || header->nlmsg_type != RTM_NEWNSID) {
    return std::nullopt;
  }
  const auto id = numberOf<int>(nlmsg_find_attr(header, sizeof(rtgenmsg), NETNSA_NSID));
  return id && *id >= 0 ? id : std::nullopt;  // NETNSA_NSID_NOT_ASSIGNED is -1
}

std::vector<std::string> parseAddresses(std::string_view dump, int interfaceIndex) {
  std::vector<std::string> addresses;
  eachMessage(dump, [&](const nlmsghdr&, std::string_view bytes) {
    if (auto address = addressIn(bytes, interfaceIndex); !address.empty()) {
      addresses.push_back(std::move(address));
    }
  });
  return addresses;
}

}  // namespace vfpass::host
