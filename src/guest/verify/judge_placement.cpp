#include "judge_guest.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "vfpass/base/node_set.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

using Nodes = std::set<unsigned>;

std::string onNodes(const Nodes& nodes) {
  return std::string(nodes.size() == 1 ? "node " : "nodes ") + formatNodeSet(nodes);
}

Nodes nodesOf(const HostPlacement& placement) {
  Nodes nodes;
  for (const auto& device : placement.devices) {
    nodes.insert(device.node);
  }
  return nodes;
}

// `rail0, gpu0 on node 0; rail1 on node 1`
std::string devicesText(const HostPlacement& placement) {
  std::map<unsigned, std::vector<std::string>> byNode;
  for (const auto& device : placement.devices) {
    byNode[device.node].push_back(device.entry);
  }
  std::vector<std::string> texts;
  for (const auto& [node, entries] : byNode) {
    texts.push_back(join(entries, ", ") + " on node " + std::to_string(node));
  }
  return join(texts, "; ");
}

std::string placeText(const char* what, const std::optional<Nodes>& nodes) {
  return std::string(what) + (nodes ? " on " + onNodes(*nodes) : " not restricted to a node");
}

// The entries whose node is not among these; all if there is no restriction, because then the host
// may use any node.
std::vector<std::string> farFrom(const HostPlacement& placement,
                                 const std::optional<Nodes>& nodes) {
  std::vector<std::string> far;
  for (const auto& device : placement.devices) {
    if (!nodes || !nodes->contains(device.node)) {
      far.push_back(device.entry);
    }
  }
  return far;
}

constexpr const char* expectation = "vCPUs and memory on the host nodes of the VM's devices";

std::vector<std::string> problemsOf(const HostPlacement& placement) {
  std::vector<std::string> problems;
  const auto add = [&](const char* what, const std::optional<Nodes>& nodes) {
    const Nodes devices = nodesOf(placement);
    if (const auto far = farFrom(placement, nodes); !far.empty()) {
      problems.push_back(join(far, ", ") + " may be on another node than the " + what);
    } else if (!placement.guestCells && !std::ranges::includes(devices, *nodes)) {
      problems.push_back(std::string("the ") + what + " also use " + onNodes(*nodes) +
                         ", and the guest has no NUMA cells that would show it");
    }
  };
  add("vCPUs", placement.vcpuNodes);
  add("memory's pages", placement.memoryNodes);
  if (problems.empty() && nodesOf(placement).size() > 1 && !placement.guestCells) {
    problems.emplace_back("the guest has no NUMA cells, so it cannot tell which devices are near");
  }
  return problems;
}

}  // namespace

std::optional<Finding> judgePlacement(const HostPlacement& placement) {
  if (placement.hostNodes < 2 || placement.devices.empty()) {
    return std::nullopt;
  }
  Finding finding{"numa-placement",
                  "",
                  Outcome::passed,
                  expectation,
                  devicesText(placement) + "; " + placeText("vCPUs", placement.vcpuNodes) + ", " +
                      placeText("memory", placement.memoryNodes),
                  ""};
  if (placement.automatic) {
    finding.outcome = Outcome::waived;
    finding.seen += "; numad places this VM";
    return seenByHost(finding);
  }
  const auto problems = problemsOf(placement);
  if (!problems.empty()) {
    finding.outcome = Outcome::warning;
    finding.seen += ": " + join(problems, "; ");
    finding.remedy =
        "compare with guest-cells, memory-placement and vcpu-placement in vfpass plan: remove "
        "other "
        "values of these from the domain, set domain-settings: apply in the mapping, shut the VM "
        "off, run vfpass attach and start it";
  }
  return seenByHost(finding);
}

Finding placementNotReported() {
  return seenByHost({"numa-placement", "", Outcome::waived, expectation,
                     "unknown: the vfpass of the VM's host does not report it",
                     "install the same version of vfpass on both hosts"});
}

}  // namespace vfpass::verify
