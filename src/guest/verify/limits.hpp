#pragma once

#include <optional>
#include <string>

#include "vfpass/topology.hpp"

namespace vfpass::verify {

/// Encapsulation of a packet's payload on the wire.
enum class Wire { infiniband, roceV1, roceV2OverIpv4, roceV2OverIpv6 };

/// Bytes around the payload of one packet, including the gap between packets: 82 for RoCE v2 over
/// IPv4. A VLAN tag adds four on Ethernet, also if the guest never sees it: the card's switch adds
/// the tag of a lease's VLAN between the guest and the wire.
unsigned headerBytes(Wire wire, bool vlan);

/// Share of the link rate available for data, 0 to 1. `mtu` is the RDMA MTU in bytes.
double wireShare(Wire wire, bool vlan, unsigned mtu);

/// Data rate of a PCI Express link in one direction, in Gb/s. `payload` is the payload of one
/// packet in bytes: usually 256; 64 where a root complex splits peer-to-peer packets. nullopt for a
/// link of unknown speed or width.
std::optional<double> pcieGigabits(const PcieLink& link, unsigned payload);

/// Location of the two ends of a transfer.
enum class Ends {
  loopback,  ///< one PF: the NIC reads all data from memory and writes it back over one link
  apart      ///< two PFs, with the wire between them
};

/// What determines the limits of a transfer.
struct LimitInput {
  double portGigabits = 0;  ///< link rate without line code; 0: unknown
  Wire wire = Wire::roceV2OverIpv4;
  bool vlan = false;
  unsigned mtu = 0;  ///< RDMA MTU; 0: unknown
  PcieLink nic;
  std::optional<PcieLink> gpu;  ///< GPU memory is read or written
  bool splits = false;          ///< GPU traffic crosses a root complex, which splits packets
};

/// The lowest limit, and each limit by itself, in Gb/s of data. An unknown limit is ignored.
struct Limit {
  double gigabits = 0;
  std::optional<double> wire;
  std::optional<double> pcie;
  std::string name;       ///< `the port after headers`, `PCI Express`, ...
  bool estimate = false;  ///< a loopback's, from the measurement of one card: others may be faster
};

/// nullopt when neither limit is known.
std::optional<Limit> limitOf(const LimitInput& input, Ends ends);

}  // namespace vfpass::verify
