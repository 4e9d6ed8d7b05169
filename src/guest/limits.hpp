#pragma once

#include <optional>
#include <string>

#include "vfpass/topology.hpp"

namespace vfpass::guest {

/// What wraps a packet's payload on the wire.
enum class Wire { infiniband, roceV1, roceV2OverIpv4, roceV2OverIpv6 };

/// Bytes around the payload of one packet, gaps between packets included: 82 for RoCE v2 over IPv4.
/// A VLAN tag adds four on Ethernet, whoever puts it on: of a lease's VLAN it is the card's switch,
/// between the guest and the wire.
unsigned headerBytes(Wire wire, bool vlan);

/// The share of a link's rate that is left for data, 0 to 1. `mtu` is the RDMA MTU in bytes.
double wireShare(Wire wire, bool vlan, unsigned mtu);

/// What a PCI Express link lets through in one direction, in Gb/s of data. `payload` is the bytes
/// of one packet: 256 usually, 64 where a root complex splits what devices send each other. nullopt
/// for a link that cannot be seen.
std::optional<double> pcieGigabits(const PcieLink& link, unsigned payload);

/// Where the two ends of a transfer are.
enum class Ends {
  loopback,  ///< on one port: all that it reads from memory it writes there as well
  apart      ///< on two machines
};

/// What a transfer is limited by.
struct LimitInput {
  double portGigabits = 0;  ///< the link's rate for packets; 0: unknown
  Wire wire = Wire::roceV2OverIpv4;
  bool vlan = false;
  unsigned mtu = 0;  ///< RDMA MTU; 0: unknown
  PcieLink nic;
  std::optional<PcieLink> gpu;  ///< GPU memory is read or written
  bool splits = false;          ///< GPU traffic crosses a root complex
};

/// The lowest of the limits, and each by itself in Gb/s of data; an unknown one is no limit.
struct Limit {
  double gigabits = 0;
  std::optional<double> wire;
  std::optional<double> pcie;
  std::string name;  ///< `the port after headers`, `PCI Express`, ...
};

/// nullopt where neither limit is known.
std::optional<Limit> limitOf(const LimitInput& input, Ends ends);

}  // namespace vfpass::guest
