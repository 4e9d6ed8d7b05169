#pragma once

#include <cstdint>
#include <tuple>

#include "vfpass/topology.hpp"
#include "vfpass/topology/rails.hpp"

namespace vfpass::topology {

/// The rate that one more VF of a PF can expect, in Mbit/s: the PF's rate divided by the number of
/// its taken VFs plus one. The rate is that of its fastest port, or of its PCI Express link if that
/// is slower or no port reports a rate. 0: unknown.
std::uint64_t shareOf(const TopologyFunction& pf, unsigned taken);

using PfRank = std::tuple<bool, std::uint64_t, unsigned, PciAddress>;

/// Lower is better among equally near PFs: a usable one, the largest share of its rate (among
/// equally fast ones: the fewest VFs taken), the lowest address.
PfRank rankOf(const TopologyFunction& pf, unsigned taken);

}  // namespace vfpass::topology
