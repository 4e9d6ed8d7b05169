#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "choose_gpus.hpp"
#include "judge_nccl.hpp"
#include "judge_transfer.hpp"

namespace vfpass::verify {
namespace {

/// Of several VFs together.
struct NicBytes {
  MovedBytes moved;
  bool allKnown = true;
};

NicBytes sumOf(const std::vector<NcclNic>& nics, std::optional<MovedBytes> NcclNic::*kind) {
  NicBytes sum;
  for (const NcclNic& nic : nics) {
    const MovedBytes moved = (nic.*kind).value_or(MovedBytes());
    sum.moved.sent += moved.sent;
    sum.moved.received += moved.received;
    sum.allKnown = sum.allKnown && (nic.*kind).has_value();
  }
  return sum;
}

// The VFs that the log names have to carry the data. All of them if it may use others: a log that
// was cut, or a device without a name in it.
std::vector<NcclNic> claimedNics(const NcclMember& member, const Transports& found) {
  if (member.report->connectionsLeftOut || !found.unknown.empty() || !found.notLeased.empty()) {
    return member.nics;
  }
  std::vector<NcclNic> claimed = member.nics;
  std::erase_if(claimed, [&](const NcclNic& nic) {
    return !found.used.contains(nic.entry) && !found.withoutGpu.contains(nic.entry);
  });
  return claimed;
}

std::string entriesOf(const std::vector<NcclNic>& nics) {
  std::set<std::string> entries;
  for (const NcclNic& nic : nics) {
    entries.insert(nic.entry);
  }
  return listOf(entries);
}

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

ClaimedBytes leastTraffic(const std::vector<NcclRun>& runs, std::size_t local, std::size_t ranks) {
  double sent = 0;
  double received = 0;
  for (const NcclRun& run : runs) {
    const double bytes = static_cast<double>(run.bytes) * static_cast<double>(run.iterations);
    const double own = static_cast<double>(local) / static_cast<double>(ranks);
    const bool reduces = run.operation == "all-reduce";
    sent += bytes * (reduces ? 1 : own);
    received += bytes * (reduces ? 1 : 1 - own);
  }
  constexpr double most = 9e18;  // a guest may report any number
  return {{static_cast<std::uint64_t>(std::min(sent, most)),
           static_cast<std::uint64_t>(std::min(received, most))}};
}

std::optional<Finding> judgeNcclTraffic(const NcclOutcome& outcome, const NcclMember& member) {
  const Transports found = transportsOf(outcome, member);
  if (outcome.members.size() == 1 || (found.used.empty() && found.withoutGpu.empty())) {
    return std::nullopt;
  }
  const ClaimedBytes least =
      leastTraffic(requestedRuns(outcome), member.gpus.size(), outcome.ranks());
  const auto nics = claimedNics(member, found);
  const NicBytes rdma = sumOf(nics, &NcclNic::rdmaBytes);
  const NicBytes any = sumOf(nics, &NcclNic::movedBytes);
  const NicBytes& seen = rdma.allKnown ? rdma : any;
  Finding finding{"nccl-traffic",
                  member.prefix,
                  Outcome::passed,
                  "the VFs that NCCL's log names move at least " + bytesText(least.least, least) +
                      (rdma.allKnown ? ", by RDMA" : ", of any kind"),
                  bytesText(seen.moved, least) + " over " + entriesOf(nics),
                  ""};
  if (!covers(seen.moved, least)) {
    finding.outcome = seen.allKnown ? Outcome::failed : Outcome::notObservable;
    finding.seen += seen.allKnown ? "" : "; not all VFs have counters";
    finding.remedy = !seen.allKnown
                         ? "check the counters with ip -s link show dev PF; try a newer driver"
                     : covers(any.moved, least)
                         ? "do not trust the guest's result: other packets moved, but no RDMA"
                         : "do not trust the guest's result: the data did not go through these VFs";
  }
  return seenByHost(finding);
}

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
