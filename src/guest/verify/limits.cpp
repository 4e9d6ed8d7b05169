#include "limits.hpp"

#include <algorithm>

namespace vfpass::verify {
namespace {

// Ethernet: preamble 8, addresses and type 14, checksum 4, gap 12.
constexpr unsigned ethernet = 38;
constexpr unsigned vlanTag = 4;
constexpr unsigned ipv4AndUdp = 28;
constexpr unsigned ipv6AndUdp = 48;
constexpr unsigned globalRoute = 40;
constexpr unsigned transport = 16;       // base transport header 12, invariant checksum 4
constexpr unsigned infinibandLink = 10;  // local route 8, variant checksum 2

// Header, sequence number, CRC and framing of a memory TLP, plus its share of flow control.
constexpr unsigned pciePacket = 24;

// Published for one PCI Express 5.0 x16 card, whose link carries 461 Gb/s in each direction: 290
// Gb/s in loopback, 395 between machines. In loopback the same data, and the requests for it, fill
// both directions of the link.
constexpr double measuredInLoopback = 290;
constexpr double measuredBetweenMachines = 395;
constexpr double pcieLimitOfThatCard = 461;

// Share of the raw bits that carries packets: 8b/10b, 128b/130b, and since 6.0 flits of 256 bytes
// that carry 236 bytes of packets.
double encoding(unsigned speed) {
  constexpr unsigned since3 = 8000;
  constexpr unsigned since6 = 64000;
  return speed < since3 ? 8.0 / 10 : speed < since6 ? 128.0 / 130 : 236.0 / 256;
}

// The lower of two limits; 0 means unknown.
double lower(double one, double other) {
  return one > 0 && other > 0 ? std::min(one, other) : std::max(one, other);
}

std::optional<double> known(double limit) {
  return limit > 0 ? std::optional(limit) : std::nullopt;
}

double wireLimit(const LimitInput& input) {
  return input.mtu == 0 ? 0 : input.portGigabits * wireShare(input.wire, input.vlan, input.mtu);
}

double pcieLimit(const LimitInput& input) {
  constexpr unsigned usualPayload = 256;
  constexpr unsigned splitPayload = 64;
  const unsigned payload = input.gpu && input.splits ? splitPayload : usualPayload;
  const double nic = pcieGigabits(input.nic, payload).value_or(0);
  return input.gpu ? lower(nic, pcieGigabits(*input.gpu, payload).value_or(0)) : nic;
}

}  // namespace

unsigned headerBytes(Wire wire, bool vlan) {
  const unsigned tagged = ethernet + transport + (vlan ? vlanTag : 0);
  switch (wire) {
    case Wire::infiniband:
      return infinibandLink + transport;
    case Wire::roceV1:
      return tagged + globalRoute;
    case Wire::roceV2OverIpv4:
      return tagged + ipv4AndUdp;
    case Wire::roceV2OverIpv6:
      return tagged + ipv6AndUdp;
  }
  return 0;
}

double wireShare(Wire wire, bool vlan, unsigned mtu) {
  return static_cast<double>(mtu) / (mtu + headerBytes(wire, vlan));
}

std::optional<double> pcieGigabits(const PcieLink& link, unsigned payload) {
  if (link.speed == 0 || link.width == 0) {
    return std::nullopt;
  }
  const double gigabits = link.speed / 1000.0 * link.width * encoding(link.speed);
  return gigabits * payload / (payload + pciePacket);
}

std::optional<Limit> limitOf(const LimitInput& input, Ends ends) {
  double wire = wireLimit(input);
  double pcie = pcieLimit(input);
  Limit limit;
  limit.wire = known(wire);
  limit.pcie = known(pcie);
  const bool loopback = ends == Ends::loopback;
  if (loopback && pcie > 0) {
    pcie *= measuredInLoopback / pcieLimitOfThatCard;
  } else if (loopback) {
    wire *= measuredInLoopback / measuredBetweenMachines;
  }
  limit.gigabits = lower(wire, pcie);
  if (limit.gigabits <= 0) {
    return std::nullopt;
  }
  limit.name = wire > 0 && wire <= limit.gigabits ? "the port after headers" : "PCI Express";
  limit.name += loopback ? ", in loopback" : "";
  limit.estimate = loopback;
  return limit;
}

}  // namespace vfpass::verify
