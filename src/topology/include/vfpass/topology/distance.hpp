#pragma once

#include <string_view>

#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// Distance between two functions, nearest first, in the terms of `nvidia-smi topo -m`.
enum class Distance {
  self,  ///< X
  pix,   ///< at most one PCI Express bridge: one switch, one root port
  pxb,   ///< several bridges, but no host bridge
  phb,   ///< a host bridge, typically the CPU
  node,  ///< between host bridges of one NUMA node
  sys    ///< between NUMA nodes, or host bridges with an unknown relation
};

std::string_view toString(Distance distance);  ///< `X`, `PIX`, ...
std::string_view explain(Distance distance);   ///< one phrase for the legend

/// Distance between two functions, by their indexes in `topology`. A switch counts as one bridge
/// although the path crosses two of its functions; so do the nested switches of one Broadcom PEX
/// chip.
Distance distance(const Topology& topology, std::size_t one, std::size_t other);

/// The port that represents a whole switch: the upstream port of the switch that `bridge` belongs
/// to, or of the outermost of a PEX chip's nested switches. Other bridges represent themselves.
std::size_t switchOf(const Topology& topology, std::size_t bridge);

}  // namespace vfpass::topology
