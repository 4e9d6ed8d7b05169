#include <map>

#include "file_readers.hpp"
#include "pf_selector.hpp"
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
  return policy;
}

// Two policies for one PF would undo each other at every boot.
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

}  // namespace

HostPolicy readHostPolicy(const std::string& text, ProblemList& problems) {
  static const SchemaValidator schema(hostSchema());
  HostPolicy host;
  host.file = problems.file();
  auto root = readYaml(text, problems);
  if (!root) {
    return host;
  }
  schema.validate(*root, problems);
  Node* const list = find(*root, "pfs");
  if (list != nullptr && !list->refused && list->kind == NodeKind::list) {
    for (auto& entry : list->items) {
      host.pfs.push_back(readPolicy(entry, problems));
    }
  }
  checkUnique(host, problems);
  return host;
}

}  // namespace vfpass::config
