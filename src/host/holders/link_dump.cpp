#include "holders/link_dump.hpp"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "netlink/netlink_dump.hpp"
#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

template <typename Header>
NetlinkMessage startMessage(int type, int flags, const Header& header) {
  NetlinkMessage message = newMessage();
  requireRoom(nlmsg_put(message.get(), 0, 1, type, 0, NLM_F_REQUEST | flags) != nullptr);
  requireRoom(
      nlmsg_append(message.get(), const_cast<Header*>(&header), sizeof header, NLMSG_ALIGNTO) == 0);
  return message;
}

std::string kindOf(nlattr* information) {
  if (information == nullptr) {
    return {};
  }
  return textOf(
      nla_find(static_cast<nlattr*>(nla_data(information)), nla_len(information), IFLA_INFO_KIND));
}

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
  link.kind = kindOf(find(IFLA_LINKINFO));
  link.master = numberOf<int>(find(IFLA_MASTER)).value_or(0);
  link.lower = numberOf<int>(find(IFLA_LINK)).value_or(0);
  link.lowerNamespace = numberOf<int>(find(IFLA_LINK_NETNSID));
  link.parentBus = textOf(find(IFLA_PARENT_DEV_BUS_NAME));
  link.parentName = textOf(find(IFLA_PARENT_DEV_NAME));
  return link;
}

}  // namespace

std::string linkDumpQuery() {
  const auto message = startMessage(RTM_GETLINK, NLM_F_DUMP, ifinfomsg{});
  // Exclude VF lists and counters, for which a driver may have to query its firmware.
  requireRoom(nla_put_u32(message.get(), IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) == 0);
  return bytesOf(message);
}

std::string addressDumpQuery() {
  return bytesOf(startMessage(RTM_GETADDR, NLM_F_DUMP, ifaddrmsg{}));
}

std::string namespaceIdQuery(int descriptor) {
  const auto message = startMessage(RTM_GETNSID, 0, rtgenmsg{});
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

}  // namespace vfpass::host
