#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "context.hpp"

namespace vfpass::settings {

/// A part of the guest and the host node that it belongs to.
struct PlacedCell {
  unsigned id = 0;
  int node = 0;
  std::set<unsigned> vcpus;
  std::uint64_t bytes = 0;
};

/// Where the guest's vCPUs and memory belong: next to its devices.
struct Placement {
  std::set<unsigned> deviceNodes;  ///< host nodes that devices sit on
  std::vector<PlacedCell> cells;   ///< none: nothing follows from the devices
  bool guestHasCells = false;      ///< as it is
  bool needsCells = false;         ///< devices on several nodes, and the guest has no cells
  std::string obstacle;            ///< why the devices' nodes lead to no placement; empty: they do
};

Placement choosePlacement(const Input& input);

/// CPUs of a host node; empty where the host does not tell.
std::set<unsigned> cpusOf(const Input& input, int node);

/// Host nodes that devices sit on.
std::set<int> nodesOf(const Input& input);

}  // namespace vfpass::settings
