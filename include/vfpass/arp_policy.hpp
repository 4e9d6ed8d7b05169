#pragma once

#include <cstdint>

namespace vfpass::arp {

/// ARP settings (`net.ipv4.conf.NETDEV.arp_announce`, `.arp_ignore`) of a machine with several RoCE
/// ports: guest-setup writes them in guests, doctor checks them on the host. By default, a port
/// also answers for the other ports' addresses, and uses them in its own requests. Peers then send
/// RoCE traffic to a port that does not have the address. The kernel applies the larger of a port's
/// value and that of `all` (Documentation/networking/ip-sysctl.rst, net/ipv4/arp.c).

/// The port's requests carry an address of its own. 1 is not enough: it allows another port's
/// address in the target's network, so it has no effect if all ports are in one network.
inline constexpr unsigned announce = 2;

/// The port answers only for its own addresses.
inline constexpr unsigned ignore = 1;

/// 2 additionally ignores senders outside the port's network, such as a peer that announces its
/// address in another one. Nothing here needs that, but an administrator may have chosen it.
inline constexpr unsigned ignoreStrict = 2;

/// Whether every port announces, and answers for, only its own addresses. Larger values are not
/// stricter: the kernel treats an unknown arp_announce as 0, and with arp_ignore 3 a port answers
/// for the others again.
constexpr bool isSound(std::uint64_t announced, std::uint64_t ignored) {
  return announced == announce && (ignored == ignore || ignored == ignoreStrict);
}

}  // namespace vfpass::arp
