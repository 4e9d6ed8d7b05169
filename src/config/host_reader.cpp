#include <map>

#include "readers.hpp"
#include "schema_validation.hpp"
#include "yaml_reader.hpp"

namespace vfpass::config {
namespace {

PfPolicy readPolicy(Node& node, ProblemList& problems) {
  PfPolicy policy;
  policy.place = problems.place(node.position);
  policy.pf = readPfSelector(find(node, "pf"), problems).value_or(PfSelector{});
  policy.serial = textOf(find(node, "serial"));
  policy.vfCount = unsignedOf(find(node, "virtual-function-count"));
  policy.eswitchMode = textOf(find(node, "embedded-switch-mode"));
  policy.mtu = unsignedOf(find(node, "mtu"));
  policy.up = booleanOf(find(node, "up"));
  policy.probeVfs = booleanOf(find(node, "probe-virtual-functions")).value_or(false);
  policy.allowDisruption = booleanOf(find(node, "allow-disruption")).value_or(false);
  return policy;
}

// Two policies for one PF would overwrite each other at every boot.
void checkUnique(const HostPolicy& host, ProblemList& problems) {
  std::map<PfSelector, SourcePlace> seen;
  for (const auto& policy : host.pfs) {
    if (policy.pf == PfSelector{}) {
      continue;
    }
    const auto [first, added] = seen.emplace(policy.pf, policy.place);
    if (!added) {
      problems.add({policy.place.line, policy.place.column},
                   "PF " + toString(policy.pf) + " is listed twice, first in line " +
                       std::to_string(first->second.line),
                   "remove one of them");
    }
  }
}

SoftRocePolicy readSoftRoce(Node& node, ProblemList& problems) {
  SoftRocePolicy policy;
  policy.place = problems.place(node.position);
  policy.name = textOf(find(node, "name")).value_or("");
  policy.netdev = textOf(find(node, "netdev")).value_or("");
  return policy;
}

// An RDMA device has one netdev, and rdma_rxe allows one link per netdev (EEXIST otherwise).
void checkUnique(const std::vector<SoftRocePolicy>& links, ProblemList& problems) {
  std::map<std::string, SourcePlace> seen;
  for (const auto& link : links) {
    for (const std::string& thing : {"SoftRoCE link " + link.name, "netdev " + link.netdev}) {
      const auto [first, added] = seen.emplace(thing, link.place);
      if (!added && !link.name.empty() && !link.netdev.empty()) {
        problems.add(
            {link.place.line, link.place.column},
            thing + " is listed twice, first in line " + std::to_string(first->second.line),
            "remove one of them");
      }
    }
  }
}

}  // namespace

bool isHostFile(const std::string& text) {
  ProblemList reportedLater{""};
  const auto root = readYaml(text, reportedLater);
  return root && find(*root, "vm") == nullptr &&
         (find(*root, "pfs") != nullptr || find(*root, "soft-roce") != nullptr);
}

HostFile readHostFile(const std::string& text, ProblemList& problems) {
  static const SchemaValidator schema(hostSchema());
  HostFile host;
  host.policy.file = problems.file();
  auto root = readYaml(text, problems);
  if (!root) {
    return host;
  }
  schema.validate(*root, problems);
  for (Node& entry : entriesOf(*root, "pfs")) {
    host.policy.pfs.push_back(readPolicy(entry, problems));
  }
  for (Node& entry : entriesOf(*root, "soft-roce")) {
    host.softRoce.push_back(readSoftRoce(entry, problems));
  }
  checkUnique(host.policy, problems);
  checkUnique(host.softRoce, problems);
  return host;
}

}  // namespace vfpass::config
