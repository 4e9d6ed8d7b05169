#include <algorithm>
#include <iterator>
#include <utility>

#include "judge_nccl.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

// More than the probe writes.
constexpr std::size_t mostRuns = 256;
constexpr std::size_t mostConnections = 1024;
constexpr double fastestBus = 1e6;  // GB/s; larger figures are implausible

template <typename Use>
void forFirst(const JsonReader& list, std::size_t most, const Use& use) {
  const auto elements = list.listOrEmpty();
  for (std::size_t each = 0; each < std::min(elements.size(), most); ++each) {
    use(elements[each]);
  }
}

std::string firstWrongOf(const JsonReader& run) {
  const JsonReader wrong = run["first_wrong"];
  return wrong.isMissing()
             ? ""
             : "rank " + std::to_string(wrong["rank"].numberOr(0)) + ", value " +
                   std::to_string(wrong["index"].numberOr(0)) + ": " + wrong["seen"].textOr("?") +
                   " instead of " + wrong["expected"].textOr("?");
}

NcclRun readRun(const JsonReader& run) {
  const double bus = run["bus_gigabytes_per_second"].figureOrNone().value_or(0);
  return {run["operation"].textOr(""),
          run["bytes"].numberOr(0),
          run["iterations"].numberOr(0),
          bus > 0 && bus < fastestBus ? bus : 0,
          run["checked_values"].numberOr(0),
          run["wrong_values"].numberOr(UINT64_MAX),
          firstWrongOf(run)};
}

void readChoice(const JsonReader& log, NcclReport& report) {
  report.network = log["network"].textOr("");
  report.bootstrap = log["bootstrap"].textOr("");
  forFirst(log["devices"], mostConnections, [&](const JsonReader& each) {
    report.devices.push_back({each["number"].numberOr(UINT64_MAX), each["name"].textOr("")});
  });
  forFirst(log["connections"], mostConnections, [&](const JsonReader& each) {
    report.connections.push_back(
        {each["from"].numberOr(UINT64_MAX), each["to"].numberOr(UINT64_MAX),
         each["transport"].textOr(""), each["device"].numberOrNone<std::uint64_t>(),
         each["gpu_direct"].flagOr(false), each["proxy"].numberOrNone<std::uint64_t>()});
  });
  report.connectionsLeftOut =
      log["left_out"].numberOr(0) != 0 || log["connections"].listOrEmpty().size() > mostConnections;
  forFirst(log["warnings"], mostRuns,
           [&](const JsonReader& each) { report.warnings.push_back(each.textOr("")); });
}

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

NcclReport readNcclReport(const nlohmann::json& document) {
  const JsonReader reader(document);
  NcclReport report{reader["nccl_version"].textOr("")};
  forFirst(reader["runs"], mostRuns,
           [&](const JsonReader& each) { report.runs.push_back(readRun(each)); });
  forFirst(reader["left_out"], mostRuns, [&](const JsonReader& each) {
    report.omissions.push_back({each["operation"].textOr(""), each["bytes"].numberOr(0),
                                each["reason"].textOr("no reason")});
  });
  readChoice(reader["log"], report);
  const bool failed = !reader["error"].isMissing();
  report.error = failed ? reader["error"].textOr("the probe failed without a reason") : "";
  report.remedy = reader["remedy"].textOr("");
  report.stage = reader["stage"].textOr("");
  report.ranks = reader["ranks"].numberOrNone<std::uint64_t>();
  forFirst(reader["local"], mostRuns, [&](const JsonReader& each) {
    report.local.push_back(each["rank"].numberOr(UINT64_MAX));
  });
  return report;
}

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
