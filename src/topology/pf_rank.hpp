#pragma once

#include <cstdint>
#include <tuple>

#include "vfpass/topology.hpp"
#include "vfpass/topology/rails.hpp"

namespace vfpass::topology {

/// What one more VF of a PF can expect, in Mbit/s: the PF's rate divided by its VFs that are taken
/// and that one. The rate is that of its fastest port, or of its PCI Express link where that is
/// slower or no port tells one. 0: unknown.
std::uint64_t shareOf(const TopologyFunction& pf, unsigned taken);

using PfRank = std::tuple<bool, std::uint64_t, unsigned, PciAddress>;

/// Lower is better among PFs that are equally near: one in working order, the largest share of its
/// rate (among equally fast ones: the fewest VFs taken), the lowest address.
PfRank rankOf(const TopologyFunction& pf, unsigned taken);

}  // namespace vfpass::topology
