#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "holders/holder_kinds.hpp"
#include "holders/link_survey.hpp"
#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "netlink/network_namespaces.hpp"
#include "vfpass/host/find_holders.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

std::vector<FunctionFacts> readFacts(const Root& root, const std::vector<PciAddress>& functions) {
  std::vector<FunctionFacts> facts;
  for (const PciAddress& address : functions) {
    if (auto function = readFunctionFacts(root, address)) {
      facts.push_back(std::move(*function));
    }
  }
  return facts;
}

// A function without a driver, or bound to VFIO, has neither netdev nor disk.
bool anyDriven(const std::vector<FunctionFacts>& functions) {
  return std::ranges::any_of(functions, isDriven);
}

void append(std::vector<Holder>& holders, std::vector<Holder> more) {
  holders.insert(holders.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
}

// Holders of all kinds that involve a host driver.
std::vector<Holder> hostHolders(const Root& root, const std::vector<FunctionFacts>& functions,
                                const ProcessList& list, milliseconds deadline) {
  const MountTable mounts(root, list.processes);
  const LinkSurvey links = surveyLinks(root, list.processes, mounts, deadline);
  std::vector<Holder> holders = rdmaHolders(root, functions, list.processes, deadline);
  append(holders, deviceFileHolders(root, functions, list.processes));
  const RdmaVisibility rdma = readRdmaVisibility(root, deadline);
  for (const FunctionFacts& function : functions) {
    if (!isDriven(function)) {
      continue;
    }
    append(holders, netdevHolders(function, links));
    append(holders, blockHolders(root, function, mounts, list.processes));
    append(holders, unknownHolders(function, links, rdma));
  }
  return holders;
}

// Sorts by the order of the functions, then by kind, and removes duplicates.
void sortLike(const std::vector<PciAddress>& functions, std::vector<Holder>& holders) {
  const auto place = [&](const Holder& holder) {
    return std::pair(std::ranges::find(functions, holder.device) - functions.begin(), holder.kind);
  };
  std::ranges::stable_sort(holders, {}, place);
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
}

}  // namespace

std::vector<Holder> findHolders(const Root& root, const std::vector<PciAddress>& functions,
                                milliseconds deadline) {
  std::vector<Holder> holders;
  if (!root.isLive() || functions.empty()) {
    return holders;
  }
  const auto facts = readFacts(root, functions);
  ProcessList list = readProcesses(root);
  auto hidden = openWithoutProcess(root, facts, list);
  if (!hidden.empty()) {
    waitUntilClosed(root, hidden);
    list = readProcesses(root);
    hidden = openWithoutProcess(root, facts, list);
  }
  for (const FunctionFacts& function : facts) {
    append(holders, processHolders(root, function, list));
    if (const auto found = hidden.find(function.address); found != hidden.end()) {
      holders.push_back(hiddenHolder(function.address, found->second, list.unread));
    }
  }
  if (anyDriven(facts)) {
    append(holders, hostHolders(root, facts, list, deadline));
  }
  sortLike(functions, holders);
  return holders;
}

}  // namespace vfpass::host
