#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// A host bridge or a switch with what is below it: the tree without the ports that only connect.
struct Branch {
  std::optional<std::size_t> port;   ///< upstream port of the switch; none: the host bridge itself
  std::vector<std::size_t> devices;  ///< right below, by address
  std::vector<Branch> branches;      ///< switches and other bridges below, by address
};

/// What to show of a host.
struct BranchChoice {
  std::function<bool(const TopologyFunction&)> device;  ///< functions that are shown
  bool mergeChips = true;                               ///< nested switches of one PEX chip are one
};

/// One branch for each host bridge, by their numbers, with everything that leads to a device that
/// is shown. Root ports are left out: below a root port there is one slot.
std::vector<Branch> branchesOf(const Topology& topology, const BranchChoice& choice);

}  // namespace vfpass::topology
