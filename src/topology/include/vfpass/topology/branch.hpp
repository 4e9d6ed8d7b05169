#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// A host bridge or a switch with everything below it: the tree without the ports that only
/// connect.
struct Branch {
  std::optional<std::size_t>
      port;  ///< upstream port of the switch; nullopt: the host bridge itself
  std::vector<std::size_t> devices;  ///< directly below, by address
  std::vector<Branch> branches;      ///< switches and other bridges below, by address
};

/// Selects the part of a host to show.
struct BranchChoice {
  std::function<bool(const Device&)> device;  ///< functions that are shown
  bool mergeChips = true;                     ///< nested switches of one PEX chip are one
};

/// One branch for each host bridge, by their numbers, with everything on the path to a shown
/// device. Root ports are omitted, because each has only one slot below it.
std::vector<Branch> branchesOf(const Topology& topology, const BranchChoice& choice);

}  // namespace vfpass::topology
