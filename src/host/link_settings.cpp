#include "vfpass/host/link_settings.hpp"

#include <linux/netlink.h>

#include <cerrno>

#include "devlink_message.hpp"
#include "link_message.hpp"
#include "netlink_exchange.hpp"
#include "netlink_reply.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

std::string refusalText(const Acknowledgement& answer) {
  const std::string reason = errnoText(answer.error);
  return answer.message.empty() ? reason : reason + ", the driver says: " + answer.message;
}

std::string remedyFor(int error) {
  if (error == EPERM || error == EACCES) {
    return "run it as root, outside a container";
  }
  return error == EBUSY ? "something uses the device; the kernel log (dmesg) may say what"
                        : "the kernel log (dmesg) may say more";
}

// Sends a change and insists on a good acknowledgement.
void change(int protocol, const std::string& request, const ExchangePurpose& purpose,
            milliseconds deadline) {
  const auto answer = parseAcknowledgement(exchangeNetlink(protocol, request, purpose, deadline));
  const std::string what = purpose.object + ": " + purpose.verb + " failed: ";
  if (!answer) {
    throw Error(what + "the kernel's reply makes no sense");
  }
  if (answer->error != 0) {
    throw Error(what + refusalText(*answer), remedyFor(answer->error));
  }
}

[[noreturn]] void throwNotKept(const ExchangePurpose& purpose, const std::string& found) {
  throw Error(purpose.object + ": " + purpose.verb + " had no effect: it reads back as " + found,
              "another program may manage this device (NetworkManager, systemd-networkd)");
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
  const auto refusal = parseAcknowledgement(reply);
  throw Error(netdev.name + ": reading the link failed: " +
              (refusal ? refusalText(*refusal) : "the kernel's reply makes no sense"));
}

void setMtu(const NetdevHandle& netdev, unsigned mtu, milliseconds deadline) {
  const ExchangePurpose purpose{netdev.name, "setting the MTU to " + std::to_string(mtu)};
  change(NETLINK_ROUTE, mtuChange(netdev.index, mtu), purpose, deadline);
  const unsigned found = readLink(netdev, deadline).mtu;
  if (found != mtu) {
    throwNotKept(purpose, std::to_string(found));
  }
}

void setUp(const NetdevHandle& netdev, bool up, milliseconds deadline) {
  const ExchangePurpose purpose{netdev.name, up ? "bringing the link up" : "taking the link down"};
  change(NETLINK_ROUTE, upChange(netdev.index, up), purpose, deadline);
  if (readLink(netdev, deadline).up != up) {
    throwNotKept(purpose, up ? "down" : "up");
  }
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

void setEswitchMode(const PciAddress& pf, EswitchMode mode, milliseconds deadline) {
  const ExchangePurpose purpose{"PF " + toString(pf),
                                "setting the eswitch mode to " + std::string(toString(mode))};
  const auto family = devlinkFamily(purpose, deadline);
  if (!family) {
    throw Error(purpose.object + ": " + purpose.verb + " failed: this kernel has no devlink",
                "boot a kernel with CONFIG_NET_DEVLINK, or take `embedded-switch-mode` out of "
                "host.yaml");
  }
  if (!readEswitchMode(pf, deadline)) {
    throw Error(purpose.object + ": " + purpose.verb +
                    " failed: its driver shows no eswitch mode "
                    "over devlink",
                "load a driver that has one, or take `embedded-switch-mode` out of host.yaml");
  }
  change(NETLINK_GENERIC, eswitchChange(*family, pf, mode), {purpose.object, purpose.verb, pf},
         deadline);
  const auto found = readEswitchMode(pf, deadline);
  if (found != mode) {
    throwNotKept(purpose, found ? std::string(toString(*found)) : "not observable");
  }
}

}  // namespace vfpass::host
