#include "vfpass/topology/distance.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::topology {
namespace {

// The bridges above a function, nearest first.
std::vector<std::size_t> bridgesAbove(const Topology& topology, std::size_t function) {
  std::vector<std::size_t> bridges;
  for (auto at = topology.functions[function].parent; at; at = topology.functions[*at].parent) {
    bridges.push_back(*at);
  }
  return bridges;
}

enum class PexPart { none, outer, inner, either };

// Broadcom's PEX switches in synthetic mode show one chip as a switch with switches below it; only
// the subsystem ID tells the levels apart. NCCL also treats them as one switch.
PexPart pexPart(const Device& bridge) {
  constexpr std::uint16_t broadcom = 0x1000;
  if (bridge.vendor != broadcom || bridge.subsystemVendor != broadcom) {
    return PexPart::none;
  }
  const unsigned series = bridge.subsystemDevice >> 12U;
  if (bridge.device == 0xc010 && series == 0xa) {
    return PexPart::either;  // PEX 88000: both levels carry the same number
  }
  if (bridge.device != 0xc030) {
    return PexPart::none;
  }
  return series == 0 ? PexPart::outer : series == 1 ? PexPart::inner : PexPart::none;
}

// The upstream port of the switch directly above this one, if both belong to one PEX chip.
std::optional<std::size_t> outerPart(const Topology& topology, std::size_t upstream) {
  const Device& inner = topology.functions[upstream];
  const PexPart part = pexPart(inner);
  if ((part != PexPart::inner && part != PexPart::either) || !inner.parent) {
    return std::nullopt;
  }
  const Device& downstream = topology.functions[*inner.parent];
  if (downstream.role != FunctionRole::downstreamPort || !downstream.parent) {
    return std::nullopt;
  }
  const Device& outer = topology.functions[*downstream.parent];
  const bool sameChip = outer.role == FunctionRole::upstreamPort && outer.device == inner.device &&
                        pexPart(outer) == (part == PexPart::inner ? PexPart::outer : part);
  return sameChip ? downstream.parent : std::nullopt;
}

}  // namespace

std::string_view toString(Distance distance) {
  constexpr std::array<std::string_view, 6> names{"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
  return names[static_cast<std::size_t>(distance)];
}

std::string_view explain(Distance distance) {
  constexpr std::array<std::string_view, 6> phrases{
      "the same function",
      "at most one PCIe bridge: one switch, or functions of one slot",
      "several PCIe bridges, but no host bridge",
      "a PCIe host bridge, typically the CPU",
      "between the host bridges of one NUMA node",
      "between NUMA nodes"};
  return phrases[static_cast<std::size_t>(distance)];
}

std::size_t switchOf(const Topology& topology, std::size_t bridge) {
  const Device& function = topology.functions[bridge];
  std::size_t upstream = bridge;
  if (function.role == FunctionRole::downstreamPort && function.parent &&
      topology.functions[*function.parent].role == FunctionRole::upstreamPort) {
    upstream = *function.parent;
  }
  if (topology.functions[upstream].role == FunctionRole::upstreamPort) {
    if (const auto outer = outerPart(topology, upstream)) {
      return *outer;
    }
  }
  return upstream;
}

Distance distance(const Topology& topology, std::size_t one, std::size_t other) {
  if (one == other) {
    return Distance::self;
  }
  // The nearest bridge above both, and the bridges between it and each of them.
  const auto& first = topology.functions[one];
  const auto& second = topology.functions[other];
  auto above = bridgesAbove(topology, one);
  auto beside = bridgesAbove(topology, other);
  std::optional<std::size_t> common;
  while (!above.empty() && !beside.empty() && above.back() == beside.back()) {
    common = above.back();
    above.pop_back();
    beside.pop_back();
  }
  // Below different root ports or host bridges.
  if (!common) {
    if (first.hostBridge == second.hostBridge) {
      return Distance::phb;
    }
    const bool oneNode = topology.processors.nodes.size() < 2;
    const bool sameNode = first.numaNode >= 0 && first.numaNode == second.numaNode;
    return sameNode || oneNode ? Distance::node : Distance::sys;
  }
  // A switch counts as one bridge, although the path crosses two of its ports.
  std::vector<std::size_t> crossed{switchOf(topology, *common)};
  for (const auto& side : {above, beside}) {
    for (const std::size_t bridge : side) {
      crossed.push_back(switchOf(topology, bridge));
    }
  }
  std::ranges::sort(crossed);
  const bool single = std::unique(crossed.begin(), crossed.end()) == crossed.begin() + 1;
  return single ? Distance::pix : Distance::pxb;
}

std::size_t dataFunction(const Topology& topology, std::size_t gpu, std::size_t pf) {
  std::size_t nearest = pf;
  for (const DirectNic& nic : topology.directNics) {
    if (nic.pf == pf && distance(topology, gpu, nic.dma) < distance(topology, gpu, nearest)) {
      nearest = nic.dma;
    }
  }
  return nearest;
}

Distance dataDistance(const Topology& topology, std::size_t gpu, std::size_t pf) {
  return distance(topology, gpu, dataFunction(topology, gpu, pf));
}

namespace {

std::string nameOf(const PassedDevice& device) {
  return device.name.empty() ? toString(device.host) : device.name;
}

std::optional<std::size_t> numberOf(const Topology& tree, const Device* function) {
  return function == nullptr
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(function - tree.functions.data()));
}

DeviceMatrix matrixOf(const Topology& tree, const GuestMachine& machine,
                      const std::vector<std::optional<std::size_t>>& numbers) {
  DeviceMatrix matrix;
  for (std::size_t one = 0; one < numbers.size(); ++one) {
    matrix.names.push_back(nameOf(machine.passed[one]));
    auto& row = matrix.distances.emplace_back();
    for (std::size_t other = 0; other < numbers.size(); ++other) {
      if (one == other) {
        row.emplace_back(Distance::self);
      } else if (numbers[one] && numbers[other]) {
        row.emplace_back(std::max(Distance::pix, distance(tree, *numbers[one], *numbers[other])));
      } else {
        row.emplace_back(std::nullopt);
      }
    }
  }
  return matrix;
}

}  // namespace

std::optional<Distance> DeviceMatrix::between(const std::string& one,
                                              const std::string& other) const {
  const auto row = std::ranges::find(names, one);
  const auto column = std::ranges::find(names, other);
  if (row == names.end() || column == names.end()) {
    return std::nullopt;
  }
  return distances[static_cast<std::size_t>(row - names.begin())]
                  [static_cast<std::size_t>(column - names.begin())];
}

DeviceMatrix hostMatrix(const GuestMachine& machine, const Topology& host) {
  std::vector<std::optional<std::size_t>> numbers;
  for (const PassedDevice& device : machine.passed) {
    numbers.push_back(numberOf(host, findFunction(host, device.host)));
  }
  return matrixOf(host, machine, numbers);
}

DeviceMatrix guestMatrix(const GuestMachine& machine, const Topology& host) {
  const Topology guest = guestTopology(machine, host);
  std::vector<std::optional<std::size_t>> numbers;
  for (const PassedDevice& device : machine.passed) {
    const auto address = guestAddress(machine, device.place);
    numbers.push_back(address ? numberOf(guest, findFunction(guest, *address)) : std::nullopt);
  }
  return matrixOf(guest, machine, numbers);
}

GuestMachine withPfs(GuestMachine machine, const std::vector<Lease>& leases) {
  for (PassedDevice& device : machine.passed) {
    const auto lease = std::ranges::find_if(
        leases, [&device](const Lease& each) { return isVf(each) && each.entry == device.name; });
    if (lease != leases.end()) {
      device.host = lease->pf;
    }
  }
  return machine;
}

namespace {

// The ports that represent the switches above a device, outermost first.
std::vector<std::size_t> switchesAbove(const Topology& topology, std::size_t device,
                                       bool mergeChips) {
  std::vector<std::size_t> ports;
  for (auto at = topology.functions[device].parent; at; at = topology.functions[*at].parent) {
    const Device& bridge = topology.functions[*at];
    if (bridge.role == FunctionRole::rootPort || bridge.role == FunctionRole::downstreamPort) {
      continue;
    }
    const std::size_t port = mergeChips ? switchOf(topology, *at) : *at;
    if (ports.empty() || ports.back() != port) {
      ports.push_back(port);
    }
  }
  std::reverse(ports.begin(), ports.end());
  return ports;
}

Branch& below(Branch& branch, std::size_t port) {
  // Devices come in address order, so the branch of the previous device is the first candidate.
  const auto found = std::find_if(branch.branches.rbegin(), branch.branches.rend(),
                                  [&](const Branch& candidate) { return candidate.port == port; });
  if (found != branch.branches.rend()) {
    return *found;
  }
  branch.branches.push_back({port, {}, {}});
  return branch.branches.back();
}

void sortByAddress(Branch& branch) {
  std::ranges::sort(branch.branches,
                    [](const Branch& one, const Branch& other) { return one.port < other.port; });
  for (Branch& inner : branch.branches) {
    sortByAddress(inner);
  }
}

}  // namespace

std::vector<Branch> branchesOf(const Topology& topology, const BranchChoice& choice) {
  std::vector<Branch> roots(topology.hostBridges.size());
  for (std::size_t i = 0; i < topology.functions.size(); ++i) {
    const Device& function = topology.functions[i];
    if (isBridge(function) || !choice.device(function)) {
      continue;
    }
    Branch* at = &roots[function.hostBridge];
    for (const std::size_t port : switchesAbove(topology, i, choice.mergeChips)) {
      at = &below(*at, port);
    }
    at->devices.push_back(i);
  }
  for (Branch& root : roots) {
    sortByAddress(root);
  }
  return roots;
}

}  // namespace vfpass::topology
