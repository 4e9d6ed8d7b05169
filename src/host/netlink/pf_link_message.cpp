#include "netlink/pf_link_message.hpp"

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "netlink/netlink_message.hpp"

namespace vfpass::host {
namespace {

NetlinkMessage startLinkMessage(int type, int flags, const ifinfomsg& interface) {
  NetlinkMessage message = newMessage();
  requireRoom(nlmsg_put(message.get(), 0, 1, type, 0, NLM_F_REQUEST | flags) != nullptr);
  ifinfomsg copy = interface;
  requireRoom(nlmsg_append(message.get(), &copy, sizeof copy, NLMSG_ALIGNTO) == 0);
  return message;
}

ifinfomsg interfaceNumber(int index) {
  ifinfomsg interface {};
  interface.ifi_family = AF_UNSPEC;
  interface.ifi_index = index;
  return interface;
}

}  // namespace

std::string linkSettingsQuery(int interfaceIndex) {
  const auto message = startLinkMessage(RTM_GETLINK, 0, interfaceNumber(interfaceIndex));
  requireRoom(nla_put_u32(message.get(), IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) == 0);
  return bytesOf(message);
}

std::string mtuChange(int interfaceIndex, unsigned mtu) {
  const auto message = startLinkMessage(RTM_SETLINK, NLM_F_ACK, interfaceNumber(interfaceIndex));
  requireRoom(nla_put_u32(message.get(), IFLA_MTU, mtu) == 0);
  return bytesOf(message);
}

std::string upChange(int interfaceIndex, bool up) {
  ifinfomsg interface = interfaceNumber(interfaceIndex);
  // Only the bits in ifi_change are changed (rtnl_dev_combine_flags); promiscuous mode is kept.
  interface.ifi_change = IFF_UP;
  interface.ifi_flags = up ? unsigned{IFF_UP} : 0U;
  return bytesOf(startLinkMessage(RTM_SETLINK, NLM_F_ACK, interface));
}

std::optional<LinkSettings> parseLinkSettings(std::string_view bytes, int interfaceIndex) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(ifinfomsg));
  if (header == nullptr || header->nlmsg_type != RTM_NEWLINK) {
    return std::nullopt;
  }
  ifinfomsg interface {};
  std::memcpy(&interface, nlmsg_data(header), sizeof interface);
  const auto mtu = numberOf<std::uint32_t>(
      nlmsg_find_attr(header, static_cast<int>(sizeof interface), IFLA_MTU));
  if (interface.ifi_index != interfaceIndex || !mtu) {
    return std::nullopt;
  }
  return LinkSettings{*mtu, (interface.ifi_flags & IFF_UP) != 0};
}

}  // namespace vfpass::host
