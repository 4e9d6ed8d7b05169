#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// How a link runs, compared with what its two ends can do together.
enum class LinkState {
  unknown,   ///< it reports no width or no speed: a VF, a device without power, a captured tree
  full,      ///< at full speed and width
  idle,      ///< a GPU, or the switch on its card, at full width and lower speed, which the GPU
             ///< chooses itself while it is idle
  degraded,  ///< lower speed or width, of a GPU: lower width
  synthetic  ///< the uplink of a switch that reports an implausible speed: it tells nothing
};

/// The link above a function, towards the root complex.
struct Link {
  std::size_t function = 0;  ///< its lower end, an index in Topology::functions
  PcieLink now;              ///< current speed and width; 0: not observable
  PcieLink possible;         ///< the lower speed and width of its two ends; 0: not observable
  LinkState state = LinkState::unknown;
  /// Current speed times width as a share of what is possible, 0 to 1. 1 unless degraded; of a GPU
  /// or the switch on its card only the width counts.
  double share = 1;
};

/// The link above this function, an endpoint or the upstream port of a switch; for a VF that of its
/// PF. Of a root port or downstream port, which has none, the state is unknown. The one definition
/// of a degraded link, for topo, doctor, verify and metrics.
Link linkAbove(const Topology& topology, std::size_t function);

/// Whether the port above allows less than the function can do: a card of Gen5 in a slot of Gen4.
bool isLimitedBySlot(const Topology& topology, const Link& link);

/// Whether the link above this port of a switch can do less than the link above one of `devices`,
/// which are below the switch. False where either is unknown or synthetic.
bool isNarrowerThanBelow(const Topology& topology, std::size_t uplink,
                         const std::vector<std::size_t>& devices);

/// The links from the function up to the root complex, or only up to the bridge `below`: its own,
/// then the uplinks of the switches above it. The link of a downstream port is that of the function
/// below it, and has no entry of its own.
std::vector<Link> linksAbove(const Topology& topology, std::size_t function,
                             std::optional<std::size_t> below = std::nullopt);

/// The nearest bridge above both; nullopt if they share only the root complex.
std::optional<std::size_t> commonBridge(const Topology& topology, std::size_t one,
                                        std::size_t other);

/// `Gen5 x16`; empty if its speed or width is not observable.
std::string linkText(const PcieLink& link);

/// The slowest of these links at its possible speed and width, without those that are synthetic or
/// not observable; {} if none is left.
PcieLink narrowest(const std::vector<Link>& links);

}  // namespace vfpass::topology
