#include "nccl_requests.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

template <typename Item>
std::string itemProblem(const NcclOutcome& outcome, const std::vector<Item>& items,
                        std::set<std::pair<std::string, std::uint64_t>>& seen) {
  for (const Item& each : items) {
    if (std::ranges::find(collectives, each.operation) == std::end(collectives)) {
      return "reports an operation that was not asked for: " + each.operation;
    }
    if (std::ranges::find(outcome.sizes, each.bytes) == outcome.sizes.end()) {
      return "reports a size that was not asked for: " + std::to_string(each.bytes) + " bytes";
    }
    if (!seen.emplace(each.operation, each.bytes).second) {
      return "reports " + each.operation + " of " + wholeUnitsText(each.bytes) + " twice";
    }
  }
  return "";
}

}  // namespace

std::string wholeUnitsText(std::uint64_t bytes) {
  constexpr std::pair<std::uint64_t, const char*> units[] = {
      {std::uint64_t{1} << 30U, " GiB"}, {std::uint64_t{1} << 20U, " MiB"}, {1U << 10U, " KiB"}};
  for (const auto& [unit, name] : units) {
    if (bytes >= unit && bytes % unit == 0) {
      return std::to_string(bytes / unit) + name;
    }
  }
  return std::to_string(bytes) + " bytes";
}

std::string listOf(const std::set<std::string>& words) {
  return join({words.begin(), words.end()}, ", ");
}

std::string requestText(const NcclRun& run) {
  return run.operation + " of " + wholeUnitsText(run.bytes);
}

const NcclRun* runOf(const NcclReport& report, const std::string& operation, std::uint64_t bytes) {
  const auto found = std::ranges::find_if(report.runs, [&](const NcclRun& each) {
    return each.operation == operation && each.bytes == bytes;
  });
  return found == report.runs.end() ? nullptr : &*found;
}

const NcclOmission* omissionOf(const NcclReport& report, const NcclRun& request) {
  const auto found = std::ranges::find_if(report.omissions, [&](const NcclOmission& each) {
    return each.operation == request.operation && each.bytes == request.bytes;
  });
  return found == report.omissions.end() ? nullptr : &*found;
}

std::string requestProblem(const NcclOutcome& outcome, const NcclReport& report) {
  std::set<std::pair<std::string, std::uint64_t>> seen;
  const std::string problem = itemProblem(outcome, report.runs, seen);
  return problem.empty() ? itemProblem(outcome, report.omissions, seen) : problem;
}

std::vector<NcclRun> requestsOf(const NcclOutcome& outcome) {
  std::vector<NcclRun> requests;
  for (const char* operation : collectives) {
    for (const std::uint64_t bytes : outcome.sizes) {
      requests.push_back({operation, bytes});
    }
  }
  return requests;
}

const NcclMember* anyThatRan(const NcclOutcome& outcome, const NcclRun& request) {
  const auto found = std::ranges::find_if(outcome.members, [&](const NcclMember& each) {
    return runOf(*each.report, request.operation, request.bytes) != nullptr;
  });
  return found == outcome.members.end() ? nullptr : &*found;
}

std::vector<NcclRun> requestedRuns(const NcclOutcome& outcome) {
  std::vector<NcclRun> runs;
  for (NcclRun request : requestsOf(outcome)) {
    for (const NcclMember& member : outcome.members) {
      for (const NcclRun& each : member.report->runs) {
        if (each.operation == request.operation && each.bytes == request.bytes) {
          request.iterations = std::max(request.iterations, each.iterations);
        }
      }
    }
    runs.push_back(request);
  }
  return runs;
}

}  // namespace vfpass::verify
