#include "placement.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::settings {
namespace {

constexpr unsigned maximumCpus = 1024;

std::string listOf(const std::set<int>& nodes) {
  std::vector<std::string> texts;
  for (const int node : nodes) {
    texts.push_back(std::to_string(node));
  }
  return join(texts, ", ");
}

// Whole GiB for each cell where possible, so that 1 GiB pages fit; otherwise whole 2 MiB.
std::uint64_t shareOf(std::uint64_t bytes, std::uint64_t count) {
  const std::uint64_t unit =
      bytes % gibibyte == 0 && bytes >= count * gibibyte ? gibibyte : 2 * mebibyte;
  return bytes / count / unit * unit;
}

// One cell for each node, with even shares; the last cell gets the rest of the memory.
void placeNewCells(const Input& input, const std::set<int>& nodes, Placement& placement) {
  const unsigned count = static_cast<unsigned>(nodes.size());
  const std::uint64_t share = shareOf(input.domain.bytes, count);
  if (input.domain.vcpus < count || share == 0) {
    placement.obstacle = "the devices sit on host nodes " + listOf(nodes) + ", but " +
                         std::to_string(input.domain.vcpus) + " vCPUs with " +
                         amount(input.domain.bytes) + " cannot be divided among them";
    return;
  }
  unsigned next = 0;
  for (const int node : nodes) {
    PlacedCell cell{static_cast<unsigned>(placement.cells.size()), node, {}, share};
    const unsigned rest = count - cell.id;
    for (const unsigned last = next + (input.domain.vcpus - next) / rest; next < last; ++next) {
      cell.vcpus.insert(next);
    }
    placement.cells.push_back(cell);
  }
  placement.cells.back().bytes = input.domain.bytes - share * (count - 1);
}

void placeWholeGuest(const Input& input, int node, Placement& placement) {
  PlacedCell whole{0, node, {}, input.domain.bytes};
  for (unsigned vcpu = 0; vcpu < input.domain.vcpus; ++vcpu) {
    whole.vcpus.insert(vcpu);
  }
  placement.cells.push_back(whole);
}

bool guestHasCell(const Input& input, int number) {
  return std::any_of(
      input.domain.cells.begin(), input.domain.cells.end(),
      [number](const CellFacts& cell) { return static_cast<int>(cell.id) == number; });
}

bool hostHasNode(const Input& input, unsigned number) {
  const auto& nodes = input.topology.processors.nodes;
  return std::any_of(nodes.begin(), nodes.end(), [number](const NumaNode& node) {
    return node.number == static_cast<int>(number);
  });
}

// Assigns a host node to each of the guest's own cells, by the same rules as the mirrored tree
// (docs/guest-topology.md).
void placeExistingCells(const Input& input, const std::set<int>& nodes, Placement& placement) {
  const auto& cells = input.domain.cells;
  const bool allBound = std::all_of(
      cells.begin(), cells.end(), [](const CellFacts& cell) { return cell.hostNodes.size() == 1; });
  const bool byNumber = std::all_of(nodes.begin(), nodes.end(),
                                    [&input](int node) { return guestHasCell(input, node); }) &&
                        std::all_of(cells.begin(), cells.end(), [&input](const CellFacts& cell) {
                          return hostHasNode(input, cell.id);
                        });
  const bool noneBound = std::all_of(cells.begin(), cells.end(),
                                     [](const CellFacts& cell) { return cell.hostNodes.empty(); });
  if (!allBound && (!noneBound || (!byNumber && cells.size() != nodes.size()))) {
    placement.obstacle = "the guest's " + std::to_string(cells.size()) +
                         " cells do not correspond to the devices' host nodes " + listOf(nodes);
    return;
  }
  auto node = nodes.begin();
  for (const CellFacts& cell : cells) {
    const int host = allBound   ? static_cast<int>(*cell.hostNodes.begin())
                     : byNumber ? static_cast<int>(cell.id)
                                : *node++;
    placement.cells.push_back({cell.id, host, cell.vcpus, cell.bytes});
  }
}

}  // namespace

std::set<int> nodesOf(const Input& input) {
  std::set<int> nodes;
  for (const Device& device : input.devices) {
    const TopologyFunction* function = functionOf(input, device);
    if (function != nullptr && function->numaNode >= 0) {
      nodes.insert(function->numaNode);
    }
  }
  return nodes;
}

Placement choosePlacement(const Input& input) {
  Placement placement;
  placement.guestHasCells = !input.domain.cells.empty();
  const std::set<int> nodes = nodesOf(input);
  placement.deviceNodes.insert(nodes.begin(), nodes.end());
  if (nodes.empty() || input.topology.processors.nodes.size() < 2) {
    return placement;
  }
  if (placement.guestHasCells) {
    placeExistingCells(input, nodes, placement);
  } else if (nodes.size() == 1) {
    placeWholeGuest(input, *nodes.begin(), placement);
  } else {
    placement.needsCells = true;
    placeNewCells(input, nodes, placement);
  }
  return placement;
}

std::set<unsigned> cpusOf(const Input& input, int node) {
  std::set<unsigned> cpus;
  for (const NumaNode& each : input.topology.processors.nodes) {
    if (each.number != node) {
      continue;
    }
    // The mask consists of 32-bit words, the highest first.
    unsigned cpu = 0;
    for (auto digit = each.cpuMask.rbegin(); digit != each.cpuMask.rend(); ++digit) {
      if (*digit == ',') {
        continue;
      }
      const auto value = parseNumber(std::string_view(&*digit, 1), 16).value_or(0);
      for (unsigned bit = 0; bit < 4 && cpu < maximumCpus; ++bit, ++cpu) {
        if ((value >> bit & 1U) != 0) {
          cpus.insert(cpu);
        }
      }
    }
  }
  return cpus;
}

}  // namespace vfpass::settings
