#include "vfpass/topology/branch.hpp"

#include <algorithm>

#include "vfpass/topology/distance.hpp"

namespace vfpass::topology {
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
