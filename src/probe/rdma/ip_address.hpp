#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rdma/rdma_devices.hpp"

namespace vfpass::probe {

/// An IPv4 or IPv6 address of an interface, with the length of its network's prefix. Link-local
/// addresses do not count: applications do not connect to them.
struct IpAddress {
  int family = AF_INET;
  std::array<std::uint8_t, 16> bytes{};  ///< IPv4: the first four
  unsigned prefix = 32;
};

/// `10.99.0.1/24`; without a length: the whole address. nullopt for any other text, and for
/// link-local, multicast and unspecified addresses.
std::optional<IpAddress> parseIpAddress(const std::string& text);

/// `10.99.0.1`
std::string toString(const IpAddress& address);
/// `10.99.0.1/24`
std::string networkText(const IpAddress& address);

/// For system calls. The structure is at most as long as sockaddr_storage.
sockaddr_storage socketAddress(const IpAddress& address, std::uint16_t port);

/// An own address, and one of the peer that it may reach.
struct AddressPair {
  IpAddress own;
  IpAddress peer;
};

/// The pair to connect: of one network if there is such a pair, otherwise the first of one family,
/// which a router may connect; IPv4 first. nullopt if no two are of one family.
std::optional<AddressPair> chooseAddresses(const std::vector<IpAddress>& own,
                                           const std::vector<IpAddress>& peer);

/// The addresses of these interfaces, in the order of the interfaces and, within each, of the
/// kernel.
std::vector<IpAddress> addressesOf(const std::vector<std::string>& netdevs);

/// The interfaces over which rdma_cm reaches a port: on RoCE those of its GIDs, also VLANs; on
/// InfiniBand the IPoIB interfaces of its PCI function.
std::vector<std::string> netdevsOf(const SysfsReader& sysfs, const RdmaDevice& device,
                                   const RdmaPort& port);

/// The port's own IP addresses. Empty if it has none, or if there is no such port.
std::vector<IpAddress> portAddresses(const SysfsReader& sysfs, const std::string& device, int port);

}  // namespace vfpass::probe
