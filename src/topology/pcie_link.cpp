#include "vfpass/topology/pcie_link.hpp"

#include <algorithm>
#include <array>

#include "vfpass/pci_address.hpp"

namespace vfpass::topology {
namespace {

bool isKnown(const PcieLink& link) { return link.speed != 0 && link.width != 0; }

unsigned rate(const PcieLink& link) { return link.speed * link.width; }

unsigned depthOf(const Topology& topology, std::size_t function) {
  unsigned depth = 0;
  for (auto at = topology.functions[function].parent; at; at = topology.functions[*at].parent) {
    ++depth;
  }
  return depth;
}

// Without root the type of a port cannot be read: root port, upstream port and downstream port
// then follow from the place in the tree.
bool isUplink(const Topology& topology, std::size_t function) {
  const FunctionRole role = topology.functions[function].role;
  return role == FunctionRole::upstreamPort ||
         (role == FunctionRole::bridge && depthOf(topology, function) % 2 == 1);
}

// The lower of two capabilities; 0 means unknown.
unsigned lower(unsigned one, unsigned other) {
  return one != 0 && other != 0 ? std::min(one, other) : std::max(one, other);
}

// The number of the PF if the function is a VF, whose own registers read as zero.
std::size_t ownerOf(const Topology& topology, std::size_t function) {
  const auto& pf = topology.functions[function].physicalFunction;
  const Device* owner = pf ? findFunction(topology, *pf) : nullptr;
  return owner == nullptr ? function : static_cast<std::size_t>(owner - topology.functions.data());
}

unsigned fastestBelow(const Topology& topology, std::size_t uplink) {
  unsigned speed = 0;
  for (const Device& port : topology.functions) {
    if (port.parent == uplink) {
      speed = std::max(speed, port.best.speed);
    }
  }
  return speed;
}

// The ports of a switch chip are of one generation, but the upstream port of some virtual switches
// (Broadcom's PEX in synthetic mode) reports 5.0 GT/s above ports of 32.0 GT/s: NCCL's topology of
// BM.GPU.H100.8 has eight of them. Two generations are implausible within one chip. Between a chip
// and the root port above it they are possible, an old host with a new switch, but not below Gen3.
bool isSynthetic(const Topology& topology, std::size_t function, const PcieLink& possible) {
  constexpr unsigned twoGenerations = 4;
  constexpr unsigned gen2 = 5000;
  if (!isUplink(topology, function)) {
    return false;
  }
  const unsigned below = fastestBelow(topology, function);
  const unsigned own = topology.functions[function].best.speed;
  return (own != 0 && own * twoGenerations <= below) ||
         (possible.speed != 0 && possible.speed <= gen2 &&
          possible.speed * twoGenerations <= below);
}

double fractionOf(unsigned now, unsigned possible) {
  return possible == 0 ? 1 : std::min(1.0, static_cast<double>(now) / possible);
}

// Root ports and downstream ports: what they report is the link below them.
bool hasLinkBelow(const Topology& topology, std::size_t function) {
  const FunctionRole role = topology.functions[function].role;
  return role == FunctionRole::rootPort || role == FunctionRole::downstreamPort ||
         (role == FunctionRole::bridge && !isUplink(topology, function));
}

bool isBelow(const Topology& topology, std::size_t function, std::size_t bridge) {
  auto at = topology.functions[function].parent;
  while (at && at != bridge) {
    at = topology.functions[*at].parent;
  }
  return at.has_value();
}

// AMD's GPUs since Vega (1002:1478 above 1002:1479) and Intel's cards have a switch of their own.
// The card's link is the one above it, and the GPU lowers its speed while it is idle.
bool isSwitchOfGpu(const Topology& topology, std::size_t uplink) {
  const std::uint16_t vendor = topology.functions[uplink].vendor;
  if ((vendor != amdGraphics && vendor != intel) || !isUplink(topology, uplink)) {
    return false;
  }
  bool hasGpu = false;
  for (std::size_t i = 0; i < topology.functions.size(); ++i) {
    const Device& function = topology.functions[i];
    if (!isBelow(topology, i, uplink)) {
      continue;
    }
    // The card's audio function is of the same vendor; a NIC below makes it a switch of the host.
    if (function.vendor != vendor || function.role == FunctionRole::nic) {
      return false;
    }
    hasGpu = hasGpu || function.role == FunctionRole::gpu;
  }
  return hasGpu;
}

void judge(const Topology& topology, Link& link) {
  if (hasLinkBelow(topology, link.function)) {
    return;
  }
  if (isSynthetic(topology, link.function, link.possible)) {
    link.state = LinkState::synthetic;
    return;
  }
  if (!isKnown(link.now)) {
    return;
  }
  const double width = fractionOf(link.now.width, link.possible.width);
  const double speed = fractionOf(link.now.speed, link.possible.speed);
  const bool isGpu = topology.functions[link.function].role == FunctionRole::gpu ||
                     isSwitchOfGpu(topology, link.function);
  link.share = isGpu ? width : width * speed;
  link.state = link.share < 1 ? LinkState::degraded : speed < 1 ? LinkState::idle : LinkState::full;
}

}  // namespace

std::string linkText(const PcieLink& link) {
  constexpr std::array<unsigned, 6> speeds{2500, 5000, 8000, 16000, 32000, 64000};
  const auto found = std::ranges::find(speeds, link.speed);
  return found == speeds.end() || link.width == 0
             ? std::string{}
             : "Gen" + std::to_string(found - speeds.begin() + 1) + " x" +
                   std::to_string(link.width);
}

Link linkAbove(const Topology& topology, std::size_t function) {
  Link link;
  link.function = ownerOf(topology, function);
  const Device& lowerEnd = topology.functions[link.function];
  const PcieLink port = lowerEnd.parent ? topology.functions[*lowerEnd.parent].best : PcieLink{};
  link.now = lowerEnd.link;
  link.possible = {lower(lowerEnd.best.speed, port.speed), lower(lowerEnd.best.width, port.width)};
  // An emulated port can report less than what the link below it runs at.
  if (isKnown(link.now)) {
    link.possible.speed = std::max(link.possible.speed, link.now.speed);
    link.possible.width = std::max(link.possible.width, link.now.width);
  }
  judge(topology, link);
  return link;
}

bool isLimitedBySlot(const Topology& topology, const Link& link) {
  const PcieLink& own = topology.functions[link.function].best;
  return isKnown(link.possible) &&
         (link.possible.speed < own.speed || link.possible.width < own.width);
}

bool isNarrowerThanBelow(const Topology& topology, std::size_t uplink,
                         const std::vector<std::size_t>& devices) {
  const Link above = linkAbove(topology, uplink);
  if (above.state == LinkState::synthetic || !isKnown(above.possible)) {
    return false;
  }
  return std::ranges::any_of(devices, [&](std::size_t device) {
    return rate(linkAbove(topology, device).possible) > rate(above.possible);
  });
}

std::vector<Link> linksAbove(const Topology& topology, std::size_t function,
                             std::optional<std::size_t> below) {
  std::vector<Link> links{linkAbove(topology, function)};
  const std::size_t start = links.front().function;
  for (auto at = topology.functions[start].parent; at && at != below;
       at = topology.functions[*at].parent) {
    if (isUplink(topology, *at)) {
      links.push_back(linkAbove(topology, *at));
    }
  }
  return links;
}

std::optional<std::size_t> commonBridge(const Topology& topology, std::size_t one,
                                        std::size_t other) {
  std::vector<std::size_t> above;
  for (auto at = topology.functions[one].parent; at; at = topology.functions[*at].parent) {
    above.push_back(*at);
  }
  for (auto at = topology.functions[other].parent; at; at = topology.functions[*at].parent) {
    if (std::ranges::find(above, *at) != above.end()) {
      return at;
    }
  }
  return std::nullopt;
}

PcieLink narrowest(const std::vector<Link>& links) {
  PcieLink least;
  for (const Link& link : links) {
    const bool counts = link.state != LinkState::synthetic && isKnown(link.possible);
    if (counts && (!isKnown(least) || rate(link.possible) < rate(least))) {
      least = link.possible;
    }
  }
  return least;
}

}  // namespace vfpass::topology
