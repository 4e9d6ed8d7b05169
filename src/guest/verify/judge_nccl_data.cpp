#include <algorithm>
#include <iterator>
#include <set>

#include "judge_nccl.hpp"
#include "judge_transfer.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {
namespace {

std::uint64_t valuesOf(const NcclRun& run, std::size_t local, std::size_t ranks) {
  const std::uint64_t values = run.bytes / sizeof(float);
  return local * (run.operation == "all-reduce" ? values : values / ranks * ranks);
}

// A member that did not run it: either all leave it out, because the ranks agree on that, or none.
std::string absenceProblem(const NcclOutcome& outcome, const NcclMember& member,
                           const NcclRun& request) {
  if (omissionOf(*member.report, request) == nullptr) {
    return "reports no " + requestText(request);
  }
  const NcclMember* other = anyThatRan(outcome, request);
  return other == nullptr ? ""
                          : "left out " + requestText(request) + ", which " + other->name + " ran";
}

// Empty: the member ran it as often as the others, and all values were checked and right.
std::string runProblem(const NcclOutcome& outcome, const NcclMember& member, const NcclRun& run) {
  if (run.wrongValues != 0) {
    return std::to_string(run.wrongValues) + " wrong values" +
           (run.firstWrong.empty() ? "" : ", first " + run.firstWrong);
  }
  const std::uint64_t values = valuesOf(run, member.gpus.size(), outcome.ranks());
  if (run.checkedValues < values) {
    return "only " + std::to_string(run.checkedValues) + " values checked";
  }
  if (run.checkedValues > values) {
    return std::to_string(run.checkedValues) + " values checked, although there are only " +
           std::to_string(values);
  }
  if (run.busGigabytes <= 0) {
    return "no plausible bandwidth";
  }
  if (run.iterations == 0) {
    return "no iteration";
  }
  const NcclMember& other = *anyThatRan(outcome, run);
  const std::uint64_t iterations = runOf(*other.report, run.operation, run.bytes)->iterations;
  return run.iterations == iterations ? ""
                                      : std::to_string(run.iterations) + " iterations, " +
                                            std::to_string(iterations) + " in " + other.name;
}

// Empty: this member ran and checked, or left out, what was asked for, as all others did.
std::string dataProblem(const NcclOutcome& outcome, const NcclMember& member) {
  const std::string wrongRequest = requestProblem(outcome, *member.report);
  if (!wrongRequest.empty()) {
    return member.name + " " + wrongRequest;
  }
  for (const NcclRun& request : requestsOf(outcome)) {
    const NcclRun* own = runOf(*member.report, request.operation, request.bytes);
    const std::string problem = own == nullptr ? absenceProblem(outcome, member, request)
                                               : runProblem(outcome, member, *own);
    if (!problem.empty()) {
      return member.name + (own == nullptr ? " " : ", " + requestText(request) + ": ") + problem;
    }
  }
  return "";
}

Finding dataFailure(Finding finding, const std::string& problem) {
  finding.outcome = Outcome::failed;
  finding.seen = problem;
  finding.remedy =
      "look for errors of the GPUs and links in the guest's kernel log, then verify without "
      "GPUDirect: NCCL_NET_GDR_LEVEL=LOC in the guest";
  return finding;
}

bool nothingRan(const NcclOutcome& outcome) {
  return std::ranges::all_of(outcome.members,
                             [](const NcclMember& each) { return each.report->runs.empty(); });
}

/// What all members left out, although it was asked for.
struct Omissions {
  std::set<std::string> texts;
  bool forTime = false;              ///< or for a reason that the probe does not have
  std::set<std::string> operations;  ///< without any run
};

// The probe leaves out what cannot run, too: less than a value for each rank.
bool isAvoidable(const NcclOutcome& outcome, const NcclOmission& omission) {
  return omission.reason != "not enough free GPU memory" &&
         omission.bytes >= outcome.ranks() * sizeof(float);
}

Omissions omissionsOf(const NcclOutcome& outcome) {
  Omissions found{{}, false, {std::begin(collectives), std::end(collectives)}};
  for (const NcclRun& request : requestsOf(outcome)) {
    if (anyThatRan(outcome, request) != nullptr) {
      found.operations.erase(request.operation);
    }
    for (const NcclMember& each : outcome.members) {
      if (const NcclOmission* omission = omissionOf(*each.report, request)) {
        found.texts.insert(requestText(request) + " left out: " + omission->reason);
        found.forTime = found.forTime || isAvoidable(outcome, *omission);
      }
    }
  }
  return found;
}

Finding withOmissions(const NcclOutcome& outcome, Finding finding) {
  const Omissions found = omissionsOf(outcome);
  finding.seen += found.texts.empty() ? "" : "; " + listOf(found.texts);
  if (!found.operations.empty()) {
    finding.outcome = Outcome::notObservable;
    finding.seen = "no run of " + listOf(found.operations) + "; " + finding.seen;
    finding.remedy = "free memory of the GPUs, or set a longer --timeout";
  } else if (found.forTime) {
    finding.outcome = Outcome::warning;
    finding.remedy = "set a longer --timeout";
  }
  return finding;
}

// All guests take part in each operation, so one alone cannot be faster; nullptr: none ran it.
const NcclRun* slowestRun(const NcclOutcome& outcome, const NcclRun& request) {
  const NcclRun* slowest = nullptr;
  for (const NcclMember& each : outcome.members) {
    const NcclRun* run = runOf(*each.report, request.operation, request.bytes);
    if (run != nullptr && (slowest == nullptr || run->busGigabytes < slowest->busGigabytes)) {
      slowest = run;
    }
  }
  return slowest;
}

// Returns their number.
std::size_t addFigures(const NcclOutcome& outcome, std::vector<Figure>& figures) {
  const std::size_t before = figures.size();
  for (const NcclRun& request : requestsOf(outcome)) {
    const NcclRun* run = slowestRun(outcome, request);
    if (run == nullptr) {
      continue;
    }
    Figure figure;
    figure.source = ncclFigures;
    figure.operation = run->operation;
    figure.memory = "gpu";
    figure.messageBytes = run->bytes;
    figure.checkedBytes = run->checkedValues * sizeof(float);
    figure.gigabitsPerSecond = run->busGigabytes * 8;
    figures.push_back(figure);
  }
  return figures.size() - before;
}

}  // namespace

Finding judgeNcclData(const NcclOutcome& outcome, std::vector<Figure>& figures) {
  Finding finding{"nccl-data",
                  "",
                  Outcome::passed,
                  "all-reduce and all-gather, every value of the result checked on every rank",
                  "",
                  ""};
  if (nothingRan(outcome)) {
    const auto& omissions = outcome.members.front().report->omissions;
    finding.outcome = Outcome::notObservable;
    finding.seen =
        "nothing ran: " + (omissions.empty() ? "no reason was reported" : omissions.front().reason);
    finding.remedy = "free memory of the GPUs, or set a longer --timeout";
    return finding;
  }
  for (const NcclMember& each : outcome.members) {
    const std::string problem = dataProblem(outcome, each);
    if (!problem.empty()) {
      return dataFailure(finding, problem);
    }
  }
  finding.seen = std::to_string(addFigures(outcome, figures)) + " operations, no wrong value";
  return withOmissions(outcome, finding);
}

}  // namespace vfpass::verify
