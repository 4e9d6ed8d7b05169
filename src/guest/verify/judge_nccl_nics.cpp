#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "choose_gpus.hpp"
#include "judge_nccl.hpp"

namespace vfpass::verify {
namespace {

// Of one of the member's GPUs; empty: unknown.
std::string distanceTo(const NcclMember& member, std::size_t gpu, const std::string& vf) {
  if (gpu >= member.distances.size()) {
    return {};
  }
  const auto found = member.distances[gpu].find(vf);
  return found == member.distances[gpu].end() ? "" : found->second;
}

// The rank whose GPU is beside the NIC: with PXN that of the proxy, to which NVLink leads.
std::uint64_t rankAtNic(const NcclMember& member, const NcclConnection& connection) {
  if (connection.proxy && member.has(*connection.proxy)) {
    return *connection.proxy;
  }
  return member.has(connection.from) ? connection.from : connection.to;
}

/// The entries of the VFs by which each GPU reaches other guests, by its number in the member.
std::map<std::size_t, std::set<std::string>> usedVfs(const NcclOutcome& outcome,
                                                     const NcclMember& member) {
  std::map<std::size_t, std::set<std::string>> used;
  for (const NcclConnection& each : member.report->connections) {
    const bool leaves = member.has(each.from) != member.has(each.to) &&
                        std::max(each.from, each.to) < outcome.ranks();
    if (!leaves || each.transport != "NET/IB") {
      continue;
    }
    for (const std::string& device : rdmaDevicesOf(member, each)) {
      const auto nic = std::ranges::find(member.nics, device, &NcclNic::device);
      if (nic != member.nics.end()) {
        used[rankAtNic(member, each) - member.firstRank].insert(nic->entry);
      }
    }
  }
  return used;
}

}  // namespace

std::set<std::string> farNics(const NcclOutcome& outcome, const NcclMember& member) {
  std::set<std::string> far;
  for (const auto& [gpu, entries] : usedVfs(outcome, member)) {
    const auto rankOf = [&, gpu = gpu](const std::string& vf) {
      return distanceRank(distanceTo(member, gpu, vf));
    };
    const auto own = std::ranges::min_element(entries, {}, rankOf);
    const auto nearest = std::ranges::min_element(
        member.nics, {}, [&](const NcclNic& each) { return rankOf(each.entry); });
    if (!distanceTo(member, gpu, *own).empty() && rankOf(nearest->entry) < rankOf(*own)) {
      far.insert(member.gpus[gpu] + " over " + *own + " (" + distanceTo(member, gpu, *own) + "), " +
                 nearest->entry + " is nearer (" + distanceTo(member, gpu, nearest->entry) + ")");
    }
  }
  return far;
}

}  // namespace vfpass::verify
