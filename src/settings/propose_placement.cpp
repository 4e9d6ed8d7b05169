#include <algorithm>
#include <map>

#include "parts.hpp"
#include "vfpass/base/node_set.hpp"

namespace vfpass::settings {
namespace {

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
  std::map<int, std::uint64_t> wanted;
  for (const PlacedCell& cell : placement.cells) {
    wanted[cell.node] += cell.bytes;
  }
  for (const auto& [node, bytes] : wanted) {
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
