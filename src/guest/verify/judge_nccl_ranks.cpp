#include "judge_nccl.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

std::string rankText(const NcclMember& member) {
  const std::size_t last = member.firstRank + member.gpus.size() - 1;
  const std::string first = std::to_string(member.firstRank);
  return member.gpus.size() == 1 ? "rank " + first : "ranks " + first + "-" + std::to_string(last);
}

constexpr const char* meetingStage = "meeting the other ranks";
constexpr const char* loadingStage = "loading NCCL";
// initTransportsRank in NCCL's src/init.cc compares the ranks' versions when they meet.
constexpr const char* differentVersions = "Mismatched NCCL version";

// A rank that waits for others until the deadline only says that others are missing.
bool waitsOnly(const NcclMember& member) {
  return member.stopped ||
         (member.report && member.report->error.starts_with("deadline expired while"));
}

bool waitsToMeet(const NcclMember& member) {
  return waitsOnly(member) && member.report && member.report->stage == meetingStage;
}

bool ranToItsEnd(const NcclMember& member) {
  return member.connected && member.report && member.report->error.empty();
}

std::string whatFailed(const NcclMember& member) {
  const std::string reason = !member.report                 ? member.problem
                             : member.report->error.empty() ? "did not meet the others"
                                                            : member.report->error;
  // NCCL's error is only a class such as "invalid usage"; the warning before it has the reason.
  const bool warned = member.report && !member.report->warnings.empty();
  return rankText(member) + " (" + member.name + "): " + reason +
         (warned ? " (NCCL: " + member.report->warnings.back() + ")" : "");
}

bool hasOtherVersion(const NcclMember& member) {
  return member.report && std::ranges::any_of(member.report->warnings, [](const auto& warning) {
           return warning.starts_with(differentVersions);
         });
}

// All ranks wait for each other.
Finding nobodyMissing(const NcclOutcome& outcome, Finding finding) {
  finding.outcome = Outcome::failed;
  if (!std::ranges::all_of(outcome.members, waitsToMeet)) {
    std::vector<std::string> waiting;
    std::ranges::transform(outcome.members, std::back_inserter(waiting), whatFailed);
    finding.seen = join(waiting, "; ");
    finding.remedy = "set a longer --timeout; look at the kernel logs of the guests for their NICs";
    return finding;
  }
  const std::string& address = outcome.members.front().report->bootstrap;
  finding.seen = "all ranks run, but did not meet; rank 0 waits at " +
                 (address.empty() ? "an unknown address" : address);
  finding.remedy =
      "check that the guests reach that address; NCCL_SOCKET_IFNAME below nccl: {environment: ...} "
      "in the mapping selects another interface";
  return finding;
}

Finding missingRanks(const NcclOutcome& outcome, Finding finding) {
  std::vector<std::string> missing;
  bool loaded = true;
  for (const NcclMember& each : outcome.members) {
    if (ranToItsEnd(each) || waitsOnly(each)) {
      continue;
    }
    missing.push_back(whatFailed(each));
    finding.remedy =
        finding.remedy.empty() ? (each.report ? each.report->remedy : each.remedy) : finding.remedy;
    loaded = loaded && !(each.report && each.report->stage == loadingStage);
  }
  if (missing.empty()) {
    return nobodyMissing(outcome, std::move(finding));
  }
  if (std::ranges::any_of(outcome.members, hasOtherVersion)) {
    finding.remedy = "install the same version of NCCL in all guests";
  }
  finding.outcome = loaded ? Outcome::failed : Outcome::notObservable;
  finding.seen = join(missing, "; ");
  return finding;
}

}  // namespace

std::size_t NcclOutcome::ranks() const {
  return members.empty() ? 0 : members.back().firstRank + members.back().gpus.size();
}

Finding judgeNcclRanks(const NcclOutcome& outcome) {
  Finding finding{"nccl-ranks",
                  "",
                  Outcome::passed,
                  "the " + std::to_string(outcome.ranks()) +
                      " ranks meet and run to their end, one for each leased GPU",
                  "",
                  ""};
  if (!std::ranges::all_of(outcome.members, ranToItsEnd)) {
    return missingRanks(outcome, finding);
  }
  std::vector<std::string> parts;
  for (const NcclMember& each : outcome.members) {
    parts.push_back(rankText(each) + " in " + each.name + " with NCCL " + each.report->version);
  }
  finding.seen = join(parts, ", ");
  return finding;
}

std::optional<Finding> judgeNcclGpus(const NcclOutcome& outcome) {
  std::set<std::string> products;
  for (const NcclMember& each : outcome.members) {
    products.insert(each.products.begin(), each.products.end());
  }
  products.erase("");
  if (products.size() < 2) {
    return std::nullopt;
  }
  return Finding{"nccl-gpus",
                 "",
                 Outcome::warning,
                 "GPUs of one product",
                 listOf(products) + ": the slowest determines the figures",
                 "compare only VMs with the same GPUs"};
}

}  // namespace vfpass::verify
