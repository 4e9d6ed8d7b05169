#include "vfpass/host/link_settings.hpp"

#include <linux/netlink.h>
#include <unistd.h>

#include <cerrno>

#include "helper/guarded_child.hpp"
#include "netlink/acknowledgement.hpp"
#include "netlink/devlink_message.hpp"
#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_socket.hpp"
#include "netlink/pf_link_message.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

std::string remedyFor(int error) {
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

std::optional<std::uint16_t> devlinkFamily(const ExchangePurpose& purpose, milliseconds deadline) {
  return parseFamily(exchangeNetlink(NETLINK_GENERIC, devlinkFamilyQuery(), purpose, deadline));
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
  requireChange(NETLINK_ROUTE, mtuChange(netdev.index, mtu), purpose, deadline, remedyFor);
  const unsigned found = readLink(netdev, deadline).mtu;
  if (found != mtu) {
    throwNoEffect(purpose, std::to_string(found));
  }
}

void setUp(const NetdevHandle& netdev, bool up, milliseconds deadline) {
  const ExchangePurpose purpose{netdev.name, up ? "bringing the link up" : "taking the link down"};
  requireChange(NETLINK_ROUTE, upChange(netdev.index, up), purpose, deadline, remedyFor);
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
    throw Error(purpose.object + ": " + purpose.verb + " failed: this kernel has no devlink",
                "boot a kernel with CONFIG_NET_DEVLINK, or remove `embedded-switch-mode` from "
                "host.yaml");
  }
  if (!readEswitchMode(pf, deadline)) {
    throw Error(purpose.object + ": " + purpose.verb +
                    " failed: its driver reports no eswitch mode "
                    "over devlink",
                "load a driver that supports it, or remove `embedded-switch-mode` from host.yaml");
  }
  requireChange(NETLINK_GENERIC, eswitchChange(*family, pf, mode),
                {purpose.object, purpose.verb, pf}, deadline, remedyFor);
  const auto found = readEswitchMode(pf, deadline);
  if (found != mode) {
    throwNoEffect(purpose, found ? std::string(toString(*found)) : "not observable");
  }
}

}  // namespace vfpass::host
