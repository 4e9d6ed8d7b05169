#include "judge_nccl.hpp"

#include <algorithm>

#include "nccl_transports.hpp"

namespace vfpass::verify {

std::uint64_t leastTraffic(const std::vector<NcclRun>& runs, std::size_t local, std::size_t ranks) {
  double least = 0;
  for (const NcclRun& run : runs) {
    const double share =
        run.operation == "all-reduce"
            ? 1
            : static_cast<double>(std::max(local, ranks - local)) / static_cast<double>(ranks);
    least += static_cast<double>(run.bytes) * static_cast<double>(run.iterations) * share;
  }
  constexpr double most = 9e18;  // a guest may report any number
  return static_cast<std::uint64_t>(std::min(least, most));
}

std::optional<Finding> judgeNcclTraffic(const NcclOutcome& outcome, const NcclMember& member) {
  const Transports found = transportsOf(outcome, member);
  if (outcome.members.size() == 1 || (found.used.empty() && found.withoutGpu.empty())) {
    return std::nullopt;
  }
  const std::uint64_t least =
      leastTraffic(requestedRuns(outcome), member.gpus.size(), outcome.ranks());
  std::uint64_t moved = 0;
  bool allKnown = true;
  for (const NcclNic& nic : member.nics) {
    moved += nic.movedBytes.value_or(0);
    allKnown = allKnown && nic.movedBytes.has_value();
  }
  Finding finding{"nccl-traffic",
                  member.prefix,
                  Outcome::passed,
                  "the VM's VFs move at least " + std::to_string(least) + " bytes, of any kind",
                  std::to_string(moved) + " bytes",
                  ""};
  if (moved < least) {
    finding.outcome = allKnown ? Outcome::failed : Outcome::notObservable;
    finding.seen += allKnown ? "" : "; not all VFs have counters";
    finding.remedy = allKnown
                         ? "do not trust the guest's result: the data did not go through its VFs"
                         : "check the counters with ip -s link show dev PF; try a newer driver";
  }
  return seenByHost(finding);
}

}  // namespace vfpass::verify
