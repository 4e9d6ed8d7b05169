#include "mirror_parts.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::topology {
namespace {

const GuestCell* cellOfMemory(const GuestMachine& guest, int node) {
  const auto found = std::ranges::find_if(guest.cells, [node](const GuestCell& cell) {
    return cell.hostNodes.contains(static_cast<unsigned>(node));
  });
  return found == guest.cells.end() ? nullptr : &*found;
}

bool hasCell(const GuestMachine& guest, int id) {
  return std::ranges::any_of(
      guest.cells, [id](const GuestCell& cell) { return static_cast<int>(cell.id) == id; });
}

MirrorFault oneNodeGuest(const GuestMachine& guest, const std::set<int>& nodes) {
  return {"the devices of domain " + printable(guest.domain) + " sit on host NUMA nodes " +
              joinNumbers(nodes) + ", but the guest has " +
              (guest.cells.empty() ? "no NUMA cells" : "one NUMA cell for them"),
          "add one <cell> in <cpu><numa> for each of these nodes, with a <memnode> in "
          "<numatune> (`domain-settings: apply` in the mapping does this for a guest without "
          "cells); or use devices of one node; or set `topology: flat`"};
}

// Assigns cells to nodes without a memnode: by number if the guest has a cell of each number,
// otherwise by order.
void assignByNumber(const GuestMachine& guest, const std::set<int>& nodes, CellChoice& choice) {
  const bool byNumber =
      std::ranges::all_of(nodes, [&guest](int node) { return hasCell(guest, node); });
  auto cell = guest.cells.begin();
  std::vector<std::string> pairs;
  for (const int node : nodes) {
    const unsigned id = byNumber ? static_cast<unsigned>(node) : (cell++)->id;
    choice.cells[node] = id;
    pairs.push_back("cell " + std::to_string(id) + " for host node " + std::to_string(node));
  }
  choice.notes.push_back("no <memnode> of domain " + printable(guest.domain) +
                         " names the host node of its devices; vfpass uses " + join(pairs, ", "));
}

}  // namespace

CellChoice chooseCells(const GuestMachine& guest, const std::set<int>& hostNodes) {
  // Cells whose memory is on the devices' nodes.
  CellChoice choice;
  std::set<int> open;
  std::set<unsigned> used;
  for (const int node : hostNodes) {
    const GuestCell* cell = cellOfMemory(guest, node);
    if (cell == nullptr) {
      open.insert(node);
    } else {
      choice.cells[node] = cell->id;
      used.insert(cell->id);
    }
  }
  // Devices of different nodes need different cells.
  const bool enough = guest.cells.size() >= hostNodes.size();
  const bool distinct = used.size() == choice.cells.size();
  if (hostNodes.size() > 1 && (!enough || !distinct)) {
    choice.faults.push_back(oneNodeGuest(guest, hostNodes));
    return choice;
  }
  if (open.empty() || guest.cells.empty()) {
    return choice;
  }
  // Without any `<memnode>` the numbers decide; beside others, a missing one is a mistake.
  if (!used.empty()) {
    choice.faults.push_back({"domain " + printable(guest.domain) +
                                 " has <memnode> elements, but none for host NUMA node " +
                                 joinNumbers(open) + " of its devices",
                             "add a <memnode> for it in <numatune>, or set `topology: flat`"});
    return choice;
  }
  assignByNumber(guest, open, choice);
  return choice;
}

}  // namespace vfpass::topology
