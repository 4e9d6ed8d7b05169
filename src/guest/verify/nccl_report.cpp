#include "nccl_report.hpp"

#include <algorithm>

#include "vfpass/base/json_reader.hpp"

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
    report.connections.push_back({each["from"].numberOr(UINT64_MAX),
                                  each["to"].numberOr(UINT64_MAX), each["transport"].textOr(""),
                                  each["device"].numberOrNone<std::uint64_t>(),
                                  each["gpu_direct"].flagOr(false)});
  });
  forFirst(log["warnings"], mostRuns,
           [&](const JsonReader& each) { report.warnings.push_back(each.textOr("")); });
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
  return report;
}

}  // namespace vfpass::verify
