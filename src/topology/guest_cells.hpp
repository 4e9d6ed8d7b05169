#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/topology/mirror.hpp"

namespace vfpass::topology {

/// The guest cell for each host NUMA node.
struct CellChoice {
  std::map<int, unsigned> cells;  ///< by host node; a node without a cell is not in it
  std::vector<std::string> notes;
  std::vector<MirrorFault> faults;
};

/// Chooses cells for the host nodes of the devices. A cell whose `<memnode>` names the node takes
/// precedence, because its memory is local to the device. Without memnodes, cells are matched to
/// nodes by number, or by order where the host's numbers have gaps (AMD NPS4: 1, 3, 5, 7), with a
/// note. Faults: two nodes, but no cells, or one cell for both.
CellChoice chooseCells(const GuestMachine& guest, const std::set<int>& hostNodes);

}  // namespace vfpass::topology
