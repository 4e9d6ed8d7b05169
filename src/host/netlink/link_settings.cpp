#include "vfpass/host/link_settings.hpp"

#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

#include <cerrno>

#include "helper/guarded_child.hpp"
#include "netlink/devlink.hpp"
#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

ifinfomsg interfaceNumber(int index) {
  ifinfomsg interface {};
  interface.ifi_family = AF_UNSPEC;
  interface.ifi_index = index;
  return interface;
}

// Without VFs and statistics.
std::string linkSettingsQuery(int interfaceIndex) {
  const auto message = startRequest(RTM_GETLINK, 0, interfaceNumber(interfaceIndex));
  requireRoom(nla_put_u32(message.get(), IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) == 0);
  return bytesOf(message);
}

std::string mtuChange(int interfaceIndex, unsigned mtu) {
  const auto message = startRequest(RTM_SETLINK, NLM_F_ACK, interfaceNumber(interfaceIndex));
  requireRoom(nla_put_u32(message.get(), IFLA_MTU, mtu) == 0);
  return bytesOf(message);
}

}  // namespace

std::string upChange(int interfaceIndex, bool up) {
  ifinfomsg interface = interfaceNumber(interfaceIndex);
  // Only the bits in ifi_change are changed (rtnl_dev_combine_flags); promiscuous mode is kept.
  interface.ifi_change = IFF_UP;
  interface.ifi_flags = up ? unsigned{IFF_UP} : 0U;
  return bytesOf(startRequest(RTM_SETLINK, NLM_F_ACK, interface));
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

namespace {

std::string eswitchQuery(std::uint16_t family, const PciAddress& pf) {
  return bytesOf(startDevlink(family, 0, DEVLINK_CMD_ESWITCH_GET, pf));
}

std::string eswitchChange(std::uint16_t family, const PciAddress& pf, EswitchMode mode) {
  const auto message = startDevlink(family, NLM_F_ACK, DEVLINK_CMD_ESWITCH_SET, pf);
  const std::uint16_t value =
      mode == EswitchMode::switchdev ? DEVLINK_ESWITCH_MODE_SWITCHDEV : DEVLINK_ESWITCH_MODE_LEGACY;
  requireRoom(nla_put_u16(message.get(), DEVLINK_ATTR_ESWITCH_MODE, value) == 0);
  return bytesOf(message);
}

}  // namespace

std::optional<EswitchMode> parseEswitchReply(std::string_view bytes, std::uint16_t family,
                                             const PciAddress& pf) {
  ReceivedMessage received(bytes);
  nlmsghdr* header = received.header(sizeof(genlmsghdr));
  if (header == nullptr || header->nlmsg_type != family ||
      !isText(attributeOf(header, DEVLINK_ATTR_DEV_NAME), toString(pf))) {
    return std::nullopt;
  }
  const auto mode = numberOf<std::uint16_t>(attributeOf(header, DEVLINK_ATTR_ESWITCH_MODE));
  if (mode == DEVLINK_ESWITCH_MODE_LEGACY) {
    return EswitchMode::legacy;
  }
  return mode == DEVLINK_ESWITCH_MODE_SWITCHDEV ? std::optional(EswitchMode::switchdev)
                                                : std::nullopt;
}

namespace {

using std::chrono::milliseconds;

std::string linkRemedy(int error) {
  if (error == EPERM || error == EACCES) {
    return "run as root, outside a container";
  }
  return error == EBUSY ? "stop what uses the device; the kernel log (dmesg) may name it"
                        : "check the kernel log (dmesg)";
}

[[noreturn]] void throwNoEffect(const ExchangePurpose& purpose, const std::string& found) {
  throw Error(purpose.object + ": " + purpose.verb + " had no effect: it reads back as " + found,
              "check whether another program manages this device (NetworkManager, "
              "systemd-networkd)");
}

}  // namespace

LinkSettings readLink(const NetdevHandle& netdev, milliseconds deadline) {
  const ExchangePurpose purpose{netdev.name, "reading the link"};
  const std::string reply =
      exchangeNetlink(NETLINK_ROUTE, linkSettingsQuery(netdev.index), purpose, deadline);
  if (const auto settings = parseLinkSettings(reply, netdev.index)) {
    return *settings;
  }
  throwNoData(purpose, reply);
}

void setMtu(const NetdevHandle& netdev, unsigned mtu, milliseconds deadline) {
  const ExchangePurpose purpose{netdev.name, "setting the MTU to " + std::to_string(mtu)};
  requireChange(NETLINK_ROUTE, mtuChange(netdev.index, mtu), purpose, deadline, linkRemedy);
  const unsigned found = readLink(netdev, deadline).mtu;
  if (found != mtu) {
    throwNoEffect(purpose, std::to_string(found));
  }
}

void setUp(const NetdevHandle& netdev, bool up, milliseconds deadline) {
  const ExchangePurpose purpose{netdev.name, up ? "bringing the link up" : "taking the link down"};
  requireChange(NETLINK_ROUTE, upChange(netdev.index, up), purpose, deadline, linkRemedy);
  if (readLink(netdev, deadline).up != up) {
    throwNoEffect(purpose, up ? "down" : "up");
  }
}

bool isNetdevDetached(const NetdevHandle& netdev, milliseconds deadline) {
  const auto reply = runGuarded(deadline, -1, [&](int pipe) {
    const char detached = isDetached(netdev.index) ? '1' : '0';
    writeAll(pipe, &detached, sizeof detached);
  });
  if (!reply.finished) {
    throwNoReply({netdev.name, "asking whether its driver has detached it"}, deadline);
  }
  return reply.bytes == "1";
}

std::optional<EswitchMode> readEswitchMode(const PciAddress& pf, milliseconds deadline) {
  const ExchangePurpose purpose{"PF " + toString(pf), "reading the eswitch mode"};
  const auto family = devlinkFamily(purpose, deadline);
  if (!family) {
    return std::nullopt;
  }
  return parseEswitchReply(
      exchangeNetlink(NETLINK_GENERIC, eswitchQuery(*family, pf), purpose, deadline), *family, pf);
}

int eswitchRefusal(const PciAddress& pf, milliseconds deadline) {
  const ExchangePurpose purpose{"PF " + toString(pf), "reading the eswitch mode"};
  const auto family = ::geteuid() == 0 ? devlinkFamily(purpose, deadline) : std::nullopt;
  if (!family) {
    return 0;
  }
  const auto reply = parseAcknowledgement(
      exchangeNetlink(NETLINK_GENERIC, eswitchQuery(*family, pf), purpose, deadline));
  return reply ? reply->error : 0;
}

void setEswitchMode(const PciAddress& pf, EswitchMode mode, milliseconds deadline) {
  const ExchangePurpose purpose{"PF " + toString(pf),
                                "setting the eswitch mode to " + std::string(toString(mode))};
  const auto family = devlinkFamily(purpose, deadline);
  if (!family) {
    throwFailed(purpose, "this kernel has no devlink",
                "boot a kernel with CONFIG_NET_DEVLINK, or remove `embedded-switch-mode` from "
                "host.yaml");
  }
  if (!readEswitchMode(pf, deadline)) {
    throwFailed(purpose, "its driver reports no eswitch mode over devlink",
                "load a driver that supports it, or remove `embedded-switch-mode` from host.yaml");
  }
  requireChange(NETLINK_GENERIC, eswitchChange(*family, pf, mode),
                {purpose.object, purpose.verb, pf}, deadline, linkRemedy);
  const auto found = readEswitchMode(pf, deadline);
  if (found != mode) {
    throwNoEffect(purpose, found ? std::string(toString(*found)) : "not observable");
  }
}

}  // namespace vfpass::host
