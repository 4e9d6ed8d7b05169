#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "context.hpp"

namespace vfpass::settings {

/// A cell of the guest and the host node that it should be on.
struct PlacedCell {
  unsigned id = 0;
  int node = 0;
  std::set<unsigned> vcpus;
  std::uint64_t bytes = 0;
};

/// The placement of the guest's vCPUs and memory next to its devices.
struct Placement {
  std::set<unsigned> deviceNodes;  ///< host nodes that devices sit on
  std::vector<PlacedCell> cells;   ///< empty: the devices imply no placement
  bool guestHasCells = false;      ///< before any change
  bool needsCells = false;         ///< devices on several nodes, and the guest has no cells
  std::string obstacle;            ///< why there is no placement; empty if there is one
};

Placement choosePlacement(const Input& input);

/// CPUs of a host node; empty if the host does not report them.
std::set<unsigned> cpusOf(const Input& input, int node);

/// Host nodes that devices sit on.
std::set<int> nodesOf(const Input& input);

}  // namespace vfpass::settings
