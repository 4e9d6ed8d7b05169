#include <chrono>
#include <locale>
#include <map>
#include <sstream>

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

// The schema checks the form only.
bool isDate(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  char dash = 0;
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  stream >> year >> dash >> month >> dash >> day;  // dashes before month and day are not signs
  return stream && std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                               std::chrono::day(day))
                       .ok();
}

AcceptedFinding readAccepted(Node& node, ProblemList& problems) {
  AcceptedFinding accepted;
  accepted.check = textOf(find(node, "check")).value_or("");
  accepted.subject = textOf(find(node, "subject")).value_or("");
  accepted.reason = textOf(find(node, "reason")).value_or("");
  accepted.until = textOf(find(node, "until")).value_or("");
  if (Node* const until = findSound(node, "until"); until != nullptr && !isDate(until->text)) {
    problems.refuse(*until, "no such day: " + quoteForMessage(until->text),
                    "specify the last day, such as 2027-01-31");
  }
  return accepted;
}

// Two entries for one finding would leave open which reason and which day hold.
std::vector<AcceptedFinding> readAcceptedList(Node& root, ProblemList& problems) {
  std::vector<AcceptedFinding> list;
  std::map<std::pair<std::string, std::string>, int> lines;
  for (Node& entry : entriesOf(root, "accept")) {
    const auto& each = list.emplace_back(readAccepted(entry, problems));
    const auto [first, added] =
        lines.emplace(std::pair(each.check, each.subject), entry.position.line);
    if (!added && !each.check.empty()) {
      problems.add(entry.position,
                   "the finding " + each.check + (each.subject.empty() ? "" : ", ") + each.subject +
                       " is accepted twice, first in line " + std::to_string(first->second),
                   "remove one of them");
    }
  }
  return list;
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
         (find(*root, "pfs") != nullptr || find(*root, "soft-roce") != nullptr ||
          find(*root, "accept") != nullptr || find(*root, "gpu-memory-check") != nullptr);
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
  host.policy.gpuMemoryCheck = booleanOf(find(*root, "gpu-memory-check")).value_or(false);
  for (Node& entry : entriesOf(*root, "soft-roce")) {
    host.softRoce.push_back(readSoftRoce(entry, problems));
  }
  host.accepted = readAcceptedList(*root, problems);
  checkUnique(host.policy, problems);
  checkUnique(host.softRoce, problems);
  return host;
}

}  // namespace vfpass::config
