#include <algorithm>

#include "holders/link_survey.hpp"
#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/find_holders.hpp"

namespace vfpass::host {

std::vector<NetdevElsewhere> findNetdevsElsewhere(const Root& root,
                                                  const std::vector<PciAddress>& functions,
                                                  std::chrono::milliseconds deadline) {
  std::vector<NetdevElsewhere> found;
  if (!root.isLive() || functions.empty()) {
    return found;
  }
  const ProcessList list = readProcesses(root);
  const LinkSurvey links =
      surveyLinks(root, list.processes, MountTable(root, list.processes), deadline);
  for (const NamespaceLinks& place : links.namespaces) {
    for (const OwnedLink& each : place.links) {
      if (!place.ours && each.function &&
          std::ranges::find(functions, *each.function) != functions.end()) {
        found.push_back(
            {*each.function, printable(each.link.name.substr(0, 32)), place.description});
      }
    }
  }
  return found;
}

}  // namespace vfpass::host
