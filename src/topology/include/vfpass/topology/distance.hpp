#pragma once

#include <string_view>

#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// How two functions reach each other, nearest first; the words of `nvidia-smi topo -m`.
enum class Distance {
  self,  ///< X
  pix,   ///< at most one PCI Express bridge: one switch, one root port
  pxb,   ///< several bridges, but no host bridge
  phb,   ///< a host bridge, mostly the CPU
  node,  ///< between host bridges of one NUMA node
  sys    ///< between NUMA nodes, or between host bridges of which nothing else is known
};

std::string_view toString(Distance distance);  ///< `X`, `PIX`, ...
std::string_view explain(Distance distance);   ///< one phrase for the legend

/// Between two functions, by their numbers in `topology`. A switch counts as one bridge although it
/// is two functions on the way; so do the nested switches that a Broadcom PEX shows of itself.
Distance distance(const Topology& topology, std::size_t one, std::size_t other);

/// The port by which a switch stands for the whole of it: the upstream port of the switch that
/// `bridge` belongs to, of the outermost one where a PEX shows nested ones. Other bridges stand for
/// themselves.
std::size_t switchOf(const Topology& topology, std::size_t bridge);

}  // namespace vfpass::topology
