#include <algorithm>
#include <map>

#include "setting_proposals.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::settings {
namespace {

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
    placement.obstacle = "the devices sit on host nodes " + joinNumbers(nodes) + ", but " +
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
  return std::ranges::any_of(input.domain.cells, [number](const CellFacts& cell) {
    return static_cast<int>(cell.id) == number;
  });
}

bool hostHasNode(const Input& input, unsigned number) {
  const auto& nodes = input.topology.processors.nodes;
  return std::ranges::any_of(
      nodes, [number](const NumaNode& node) { return node.number == static_cast<int>(number); });
}

// Assigns a host node to each of the guest's own cells, by the same rules as the mirrored tree
// (docs/guest-topology.md).
void placeExistingCells(const Input& input, const std::set<int>& nodes, Placement& placement) {
  const auto& cells = input.domain.cells;
  const bool allBound =
      std::ranges::all_of(cells, [](const CellFacts& cell) { return cell.hostNodes.size() == 1; });
  const bool byNumber =
      std::ranges::all_of(nodes, [&input](int node) { return guestHasCell(input, node); }) &&
      std::ranges::all_of(cells,
                          [&input](const CellFacts& cell) { return hostHasNode(input, cell.id); });
  const bool noneBound =
      std::ranges::all_of(cells, [](const CellFacts& cell) { return cell.hostNodes.empty(); });
  if (!allBound && (!noneBound || (!byNumber && cells.size() != nodes.size()))) {
    placement.obstacle = "the guest's " + std::to_string(cells.size()) +
                         " cells do not correspond to the devices' host nodes " +
                         joinNumbers(nodes);
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

// Host nodes that devices sit on.
std::set<int> nodesOf(const Input& input) {
  std::set<int> nodes;
  for (const GuestDevice& device : input.devices) {
    const Device* function = functionOf(input, device);
    if (function != nullptr && function->numaNode >= 0) {
      nodes.insert(function->numaNode);
    }
  }
  return nodes;
}

}  // namespace

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

std::map<int, std::uint64_t> bytesByNode(const Placement& placement) {
  std::map<int, std::uint64_t> bytes;
  for (const PlacedCell& cell : placement.cells) {
    bytes[cell.node] += cell.bytes;
  }
  return bytes;
}

namespace {

// CPUs of a host node; empty if the host does not report them.
std::set<unsigned> cpusOf(const Input& input, int node) {
  const auto& nodes = input.topology.processors.nodes;
  const auto found = std::ranges::find(nodes, node, &NumaNode::number);
  return found == nodes.end() ? std::set<unsigned>{} : cpusInMask(found->cpuMask);
}

std::string attribute(const std::string& name, const std::string& value) {
  return " " + name + "='" + value + "'";
}

std::set<unsigned> hostNodes(const Placement& placement) {
  std::set<unsigned> nodes;
  for (const PlacedCell& cell : placement.cells) {
    nodes.insert(static_cast<unsigned>(cell.node));
  }
  return nodes;
}

std::string deviceNodesText(const Placement& placement) {
  const auto& nodes = placement.deviceNodes;
  return "the VM's devices sit on host node" + std::string(nodes.size() > 1 ? "s " : " ") +
         formatNodeSet(nodes);
}

void addManual(const std::string& name, const std::string& what, const std::string& reason,
               std::vector<DomainSetting>& settings) {
  settings.push_back({name, what, reason, SettingStanding::manual});
}

// Returns false when the cells cannot be created; settings that need them are then omitted.
bool proposeCells(const Input& input, const Placement& placement,
                  std::vector<DomainSetting>& settings) {
  const std::string what = std::to_string(placement.cells.size()) + " NUMA cells in <cpu><numa>";
  if (!input.domain.cpuElement) {
    addManual("guest-cells", what, deviceNodesText(placement) + "; the domain has no <cpu> element",
              settings);
    return false;
  }
  std::string numa = "<numa>";
  for (const PlacedCell& cell : placement.cells) {
    numa += "<cell" + attribute("id", std::to_string(cell.id)) +
            attribute("cpus", formatNodeSet(cell.vcpus)) +
            attribute("memory", std::to_string(cell.bytes / kibibyte)) + " unit='KiB'/>";
  }
  settings.push_back({"guest-cells", what,
                      deviceNodesText(placement) +
                          ", and a guest without cells cannot tell which of its devices are near",
                      SettingStanding::proposed,
                      DomainEdit{"guest-cells", EditPlace::cpu, {numa + "</numa>"}}});
  return true;
}

// The first node with too little memory for its cells; empty if there is none.
std::string missingMemory(const Input& input, const Placement& placement) {
  for (const auto& [node, bytes] : bytesByNode(placement)) {
    const auto found = input.capacity.nodes.find(node);
    const std::uint64_t has = found == input.capacity.nodes.end() ? 0 : found->second.bytes;
    if (has != 0 && has < bytes) {
      return "host node " + std::to_string(node) + " has " + std::to_string(has / gibibyte) +
             " GiB, but the guest needs " + amount(bytes) + " of it";
    }
  }
  return {};
}

std::vector<std::string> memoryElements(const Placement& placement, bool cells) {
  std::vector<std::string> elements{
      "<memory mode='strict'" + attribute("nodeset", formatNodeSet(hostNodes(placement))) + "/>"};
  for (const PlacedCell& cell : placement.cells) {
    if (cells) {
      elements.push_back("<memnode" + attribute("cellid", std::to_string(cell.id)) +
                         " mode='strict'" + attribute("nodeset", std::to_string(cell.node)) + "/>");
    }
  }
  return elements;
}

void proposeMemory(const Input& input, const Placement& placement,
                   std::vector<DomainSetting>& settings) {
  const bool kept = input.domain.placesMemory || input.domain.automatic;
  const std::string nodes = formatNodeSet(kept ? placement.deviceNodes : hostNodes(placement));
  const std::string what = "guest memory on host node " + nodes + " (<numatune>)";
  const std::string reason = deviceNodesText(placement) +
                             "; DMA to another node's memory crosses the link between the sockets";
  if (kept) {
    const auto& wanted = placement.deviceNodes;
    if (!input.domain.automatic &&
        !std::includes(input.domain.memoryNodes.begin(), input.domain.memoryNodes.end(),
                       wanted.begin(), wanted.end())) {
      settings.push_back({"memory-placement", what,
                          reason + "; the domain's <numatune> names node " +
                              formatNodeSet(input.domain.memoryNodes),
                          SettingStanding::administrators});
    }
    return;
  }
  if (const std::string missing = missingMemory(input, placement); !missing.empty()) {
    return addManual("memory-placement", what, reason + "; " + missing, settings);
  }
  const bool cells = placement.guestHasCells || placement.needsCells;
  settings.push_back(
      {"memory-placement", what, reason, SettingStanding::proposed,
       DomainEdit{"memory-placement", EditPlace::numatune, memoryElements(placement, cells)}});
}

struct Pins {
  std::vector<std::string> elements;
  std::set<unsigned> cpus;
  std::string obstacle;
};

Pins pinsOf(const Input& input, const Placement& placement) {
  std::map<unsigned, int> nodeOf;
  std::map<int, std::size_t> vcpus;
  for (const PlacedCell& cell : placement.cells) {
    vcpus[cell.node] += cell.vcpus.size();
    for (const unsigned vcpu : cell.vcpus) {
      nodeOf[vcpu] = cell.node;
    }
  }
  Pins pins;
  for (const auto& [node, count] : vcpus) {
    const auto cpus = cpusOf(input, node);
    pins.cpus.insert(cpus.begin(), cpus.end());
    if (cpus.size() < count) {
      pins.obstacle = "host node " + std::to_string(node) + " has " + std::to_string(cpus.size()) +
                      " CPUs for " + std::to_string(count) + " vCPUs";
    }
  }
  for (const auto& [vcpu, node] : nodeOf) {
    pins.elements.push_back("<vcpupin" + attribute("vcpu", std::to_string(vcpu)) +
                            attribute("cpuset", formatNodeSet(cpusOf(input, node))) + "/>");
  }
  return pins;
}

void proposeVcpus(const Input& input, const Placement& placement,
                  std::vector<DomainSetting>& settings) {
  const Pins pins = pinsOf(input, placement);
  const std::string what =
      "vCPUs on the CPUs of host node " + formatNodeSet(hostNodes(placement)) + " (<vcpupin>)";
  const std::string reason = deviceNodesText(placement) +
                             "; a vCPU on another node reaches them, and its memory, across the "
                             "link between the sockets";
  if (input.domain.pinsVcpus || input.domain.automatic) {
    const bool elsewhere =
        !std::includes(pins.cpus.begin(), pins.cpus.end(), input.domain.pinnedCpus.begin(),
                       input.domain.pinnedCpus.end());
    if (!input.domain.automatic && elsewhere && !pins.cpus.empty()) {
      settings.push_back(
          {"vcpu-placement", what,
           reason + "; the domain pins vCPUs to " + formatNodeSet(input.domain.pinnedCpus),
           SettingStanding::administrators});
    }
  } else if (!pins.obstacle.empty()) {
    addManual("vcpu-placement", what, reason + "; " + pins.obstacle, settings);
  } else if (!pins.elements.empty()) {
    settings.push_back({"vcpu-placement", what, reason, SettingStanding::proposed,
                        DomainEdit{"vcpu-placement", EditPlace::cputune, pins.elements}});
  }
}

}  // namespace

void proposePlacement(const Input& input, const Placement& placement,
                      std::vector<DomainSetting>& settings) {
  if (!placement.obstacle.empty()) {
    return addManual("memory-placement", "guest memory and vCPUs next to the devices",
                     placement.obstacle, settings);
  }
  if (placement.cells.empty() ||
      (placement.needsCells && !proposeCells(input, placement, settings))) {
    return;
  }
  proposeMemory(input, placement, settings);
  proposeVcpus(input, placement, settings);
}

}  // namespace vfpass::settings
