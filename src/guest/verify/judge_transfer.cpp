#include "judge_transfer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/json_reader.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

constexpr const char* wrongBytesRemedy =
    "compare firmware and driver with those of a working host: the device or its driver corrupts "
    "data";
constexpr const char* otherBuild = "check that the guest runs the probe of this vfpass build";

// The owner of the written memory checks: the target for a write, the initiator for a read.
std::uint64_t checkedBytes(const JsonReader& run) {
  const JsonReader owners = run["owners"];
  return std::max(owners["initiator"]["bytes_checked"].numberOr(0),
                  owners["target"]["bytes_checked"].numberOr(0));
}

std::string firstCorruption(const JsonReader& run) {
  for (const char* owner : {"target", "initiator"}) {
    for (const JsonReader& each : run["owners"][owner]["corruptions"].listOrEmpty()) {
      return each["damage"].textOr("") + " in message " +
             std::to_string(each["message"].numberOr(0)) + " at offset " +
             std::to_string(each["offset"].numberOr(0));
    }
  }
  return "wrong bytes";
}

// 0 for a missing or invalid figure.
double positive(const JsonReader& value) { return std::max(value.figureOrNone().value_or(0), 0.0); }

// 0 for an impossible one as well: no link is that fast.
double gigabits(const JsonReader& run) {
  constexpr double most = 1e6;
  const double figure = positive(run["bandwidth"]["gigabits_per_second"]);
  return figure < most ? figure : 0;
}

Finding finding(const Transfer& transfer, Outcome outcome, const std::string& seen,
                const std::string& remedy) {
  return {"data-" + transfer.path(),
          transfer.subject,
          outcome,
          transfer.operation + " of " + std::to_string(transfer.bytes()) + " bytes, all correct" +
              (transfer.gpu.empty() ? "" : ", in GPU " + transfer.gpu) +
              (transfer.relaxedOrdering ? ", relaxed ordering" : ""),
          seen,
          remedy};
}

// Whether the run used this memory: with `besideHost`, a host memory run comes first.
bool usesMemoryOf(const Transfer& transfer, const JsonReader& run) {
  const JsonReader memory = run["memory"];
  return memory["initiator"]["kind"].textOr("") == transfer.memory &&
         memory["target"]["kind"].textOr("") == transfer.memoryOfTarget();
}

// What an end of a run says of its memory contradicts what was asked for; a run that says nothing
// contradicts nothing.
bool isOtherMemory(const JsonReader& memory, const std::string& wanted) {
  const std::string kind = memory["kind"].textOr(wanted);
  return kind != wanted || (wanted == "gpu" && memory["registration"].textOr("") == "host");
}

// Empty: by its own words, the run is the one that was asked for. Another one has other figures.
std::string contradiction(const Transfer& transfer, const JsonReader& run, bool ofHostMemory) {
  if (run["settings"]["operation"].textOr(transfer.operation) != transfer.operation) {
    return "the probe reported another operation";
  }
  const std::string host = "host";
  const JsonReader memory = run["memory"];
  return isOtherMemory(memory["initiator"], ofHostMemory ? host : transfer.memory) ||
                 isOtherMemory(memory["target"], ofHostMemory ? host : transfer.memoryOfTarget())
             ? "the probe reported other memory than requested"
             : "";
}

// Of the last run, and with `besideHost` of the run of host memory before it.
std::string contradiction(const Transfer& transfer, const JsonReader::Elements& runs) {
  const std::string last = contradiction(transfer, runs.back(), false);
  return last.empty() && transfer.besideHost ? contradiction(transfer, runs.front(), true) : last;
}

bool usesGpu(const Transfer& transfer) {
  return transfer.memory == "gpu" || transfer.memoryOfTarget() == "gpu";
}

// Empty: the report, which has passed, covers all bytes in the requested memory, and has a figure.
std::string problemOfRuns(const Transfer& transfer, const JsonReader::Elements& runs) {
  const JsonReader run = runs.back();
  const std::uint64_t checked = checkedBytes(run);
  if (checked < transfer.bytes()) {
    return "only " + std::to_string(checked) + " bytes were checked";
  }
  if (usesGpu(transfer) && !usesMemoryOf(transfer, run)) {
    return "the probe did not use GPU memory as requested";
  }
  const std::string other = contradiction(transfer, runs);
  return !other.empty() || gigabits(run) > 0 ? other : "no plausible bandwidth";
}

// ` via DMA-BUF`, and the mechanisms that failed before.
std::string mechanismOf(const Transfer& transfer, const JsonReader& run) {
  const JsonReader memory =
      run["memory"][transfer.memoryOfTarget() == "gpu" ? "target" : "initiator"];
  std::string text = " via " + memory["registration"].textOr("");
  for (const JsonReader& each : memory["rejected"].listOrEmpty()) {
    text += each.json().is_string() ? ", not via " + each.textOr("") : "";
  }
  return text;
}

// `, median of 375 passes, 0.52 s`; empty for a run of exactly the requested messages.
std::string durationOf(const JsonReader& run) {
  const JsonReader bandwidth = run["bandwidth"];
  const std::uint64_t passes = bandwidth["passes"].numberOr(0);
  if (run["settings"]["minimum_milliseconds"].numberOr(0) == 0 || passes == 0) {
    return "";
  }
  return ", median of " + std::to_string(passes) + " passes, " +
         rounded(positive(bandwidth["seconds"])) + " s" +
         (bandwidth["minimum_reached"].flagOr(false) ? "" : " (time limit reached)");
}

/// The first problem of a report apart from its figures; nullopt: none.
std::optional<Finding> findProblem(const Transfer& transfer, const JsonReader& report,
                                   std::size_t wantedRuns) {
  const auto runs = report["runs"].listOrEmpty();
  if (runs.size() != wantedRuns) {
    const std::string error = report["error"].textOr("");
    return finding(transfer, Outcome::failed, error.empty() ? "no report" : error,
                   report["remedy"].textOr(""));
  }
  for (const JsonReader& run : runs) {
    if (!report["passed"].flagOr(false) && (!run["passed"].flagOr(false) || runs.size() == 1)) {
      return finding(transfer, Outcome::failed, firstCorruption(run), wrongBytesRemedy);
    }
  }
  return report["passed"].flagOr(false)
             ? std::nullopt
             : std::optional(finding(transfer, Outcome::failed,
                                     "the probe reported a failure without a cause", otherBuild));
}

}  // namespace

bool hasWrongBytes(const Finding& finding) {
  return finding.outcome == Outcome::failed && finding.remedy == wrongBytesRemedy;
}

std::string rounded(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

std::string percentText(double share) { return std::to_string(std::lround(share * 100)) + " %"; }

std::string latencyText(double microseconds) {
  constexpr double longest = 9999.5;  // in microseconds
  constexpr double shortest = 999.5;  // from here on rounded() has an exponent
  if (microseconds >= longest) {
    const double milliseconds = microseconds / 1000;
    return (milliseconds < shortest ? rounded(milliseconds)
                                    : std::to_string(std::llround(milliseconds))) +
           " ms";
  }
  return (microseconds < shortest ? rounded(microseconds)
                                  : std::to_string(std::llround(microseconds))) +
         " us";
}

double plausibleMicroseconds(const JsonReader& value) {
  constexpr double most = 1e9;
  const double figure = positive(value);
  return figure < most ? figure : 0;
}

std::string Transfer::path() const {
  if (memory == memoryOfTarget()) {
    return memory;
  }
  return operation == "read" ? memoryOfTarget() + "-to-" + memory
                             : memory + "-to-" + memoryOfTarget();
}

ClaimedBytes claimedBytes(const Transfer& transfer, const Json& report, bool isLoopback) {
  const auto add = [](std::uint64_t bytes, std::uint64_t& sum) {
    sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
  };
  MovedBytes checked;
  for (const JsonReader& run : JsonReader(report)["runs"].listOrEmpty()) {
    const bool isRead = run["settings"]["operation"].textOr(transfer.operation) == "read";
    add(checkedBytes(run), isRead ? checked.received : checked.sent);
  }
  if (isLoopback) {
    add(checked.received, checked.sent);
    checked.received = checked.sent;
  }
  const std::uint64_t requested = transfer.bytes() * (transfer.besideHost ? 2 : 1);
  const bool isRead = transfer.operation == "read";
  checked.sent = std::max(checked.sent, isLoopback || !isRead ? requested : 0);
  checked.received = std::max(checked.received, isLoopback || isRead ? requested : 0);
  return {checked, isLoopback};
}

ClaimedBytes atOtherEnd(const ClaimedBytes& claimed) {
  return {{claimed.least.received, claimed.least.sent}, claimed.isLoopback};
}

bool covers(const MovedBytes& moved, const ClaimedBytes& claimed) {
  const bool sent = moved.sent >= claimed.least.sent;
  const bool received = moved.received >= claimed.least.received;
  return claimed.isLoopback ? sent || received : sent && received;
}

std::string bytesText(const MovedBytes& moved, const ClaimedBytes& claimed) {
  if (claimed.isLoopback) {
    return std::to_string(std::max(moved.sent, moved.received)) + " bytes";
  }
  std::vector<std::string> parts;
  if (claimed.least.sent != 0 || claimed.least.received == 0) {
    parts.push_back(std::to_string(moved.sent) + " bytes sent");
  }
  if (claimed.least.received != 0) {
    parts.push_back(std::to_string(moved.received) + " bytes received");
  }
  return join(parts, " and ");
}

Finding judgeTransfer(const Transfer& transfer, const Json& report, std::vector<Figure>& figures) {
  if (auto problem = findProblem(transfer, JsonReader(report), transfer.besideHost ? 2 : 1)) {
    return *std::move(problem);
  }
  const auto runs = JsonReader(report)["runs"].listOrEmpty();
  const std::string problem = problemOfRuns(transfer, runs);
  if (!problem.empty()) {
    return finding(transfer, Outcome::failed, problem, otherBuild);
  }
  const JsonReader run = runs.back();
  // The figure, beside that of host memory from the same session.
  Figure figure;
  figure.subject = transfer.subject;
  figure.operation = transfer.operation;
  figure.memory = transfer.path();
  figure.gpu = transfer.gpu;
  figure.messageBytes = transfer.messageBytes;
  figure.checkedBytes = checkedBytes(run);
  figure.gigabitsPerSecond = gigabits(run);
  figure.relaxedOrdering = transfer.relaxedOrdering;
  if (transfer.besideHost && gigabits(runs.front()) > 0) {
    figure.besideHost = gigabits(runs.front());
  }
  figures.push_back(figure);
  return finding(transfer, Outcome::passed,
                 transfer.operation + ": " + rounded(figure.gigabitsPerSecond) + " Gb/s" +
                     durationOf(run) + (usesGpu(transfer) ? mechanismOf(transfer, run) : ""),
                 "");
}

Finding judgeLatency(const Transfer& transfer, const Json& report, std::vector<Figure>& figures) {
  const std::string expected = "read and send of " + std::to_string(transfer.messageBytes) +
                               " bytes, all correct" +
                               (transfer.gpu.empty() ? "" : ", in GPU " + transfer.gpu);
  // One finding for all runs.
  const auto found = [&](Outcome outcome, const std::string& seen, const std::string& remedy) {
    return Finding{"latency-" + transfer.memory, transfer.subject, outcome, expected, seen, remedy};
  };
  std::set<std::pair<std::string, std::string>> missing;
  for (const char* operation : {"read", "send"}) {
    missing.insert({operation, transfer.memory});
    if (transfer.besideHost) {
      missing.insert({operation, "host"});
    }
  }
  if (const auto problem = findProblem(transfer, JsonReader(report), missing.size())) {
    return found(Outcome::failed, problem->seen, problem->remedy);
  }
  // Each operation and memory has to be there once, with a latency and all bytes checked.
  std::string seen;
  for (const JsonReader& run : JsonReader(report)["runs"].listOrEmpty()) {
    Figure figure;
    figure.subject = transfer.subject;
    figure.operation = run["settings"]["operation"].textOr("");
    figure.memory = run["memory"]["target"]["kind"].textOr("");
    figure.gpu = figure.memory == "gpu" ? transfer.gpu : "";
    figure.messageBytes = transfer.messageBytes;
    figure.checkedBytes = checkedBytes(run);
    figure.medianMicroseconds = plausibleMicroseconds(run["latency"]["median"]);
    figure.tailMicroseconds = plausibleMicroseconds(run["latency"]["p99"]);
    const bool known = missing.erase({figure.operation, figure.memory}) == 1;
    const bool possible =
        *figure.medianMicroseconds > 0 && *figure.tailMicroseconds >= *figure.medianMicroseconds;
    if (!known || !possible || figure.checkedBytes < transfer.bytes()) {
      return found(Outcome::failed, "figures or checked bytes are missing", otherBuild);
    }
    seen += (seen.empty() ? "" : "; ") + figure.memory + " " + figure.operation + " " +
            latencyText(*figure.medianMicroseconds) + ", 99 % within " +
            latencyText(*figure.tailMicroseconds);
    // Figures of host memory are added by its own finding.
    if (figure.memory == transfer.memory) {
      figures.push_back(figure);
    }
  }
  return found(Outcome::passed, seen, "");
}

Finding judgeSizes(const Transfer& transfer, const Json& report, std::vector<Figure>& figures) {
  // Every size has to be there once for each operation.
  constexpr unsigned largestPower = 24;  // 16 MiB
  std::set<std::pair<std::string, std::uint64_t>> missing;
  for (unsigned power = 1; power <= largestPower; ++power) {
    missing.insert({"write", std::uint64_t{1} << power});
    missing.insert({"read", std::uint64_t{1} << power});
  }
  const auto found = [&](Outcome outcome, const std::string& seen, const std::string& remedy) {
    return Finding{"sizes-" + transfer.memory,
                   transfer.subject,
                   outcome,
                   "writes and reads of 2 bytes to 16 MiB, all correct",
                   seen,
                   remedy};
  };
  if (const auto problem = findProblem(transfer, JsonReader(report), missing.size())) {
    return found(Outcome::failed, problem->seen, problem->remedy);
  }
  // The figures count only if all runs are complete.
  std::vector<Figure> measured;
  double best = 0;
  for (const JsonReader& run : JsonReader(report)["runs"].listOrEmpty()) {
    Figure figure;
    figure.subject = transfer.subject;
    figure.source = sizeFigures;
    figure.operation = run["settings"]["operation"].textOr("");
    figure.memory = transfer.memory;
    figure.messageBytes = run["settings"]["bytes"].numberOr(0);
    figure.checkedBytes = checkedBytes(run);
    figure.gigabitsPerSecond = gigabits(run);
    const bool known = missing.erase({figure.operation, figure.messageBytes}) == 1;
    if (!known || figure.gigabitsPerSecond == 0 || figure.checkedBytes < figure.messageBytes ||
        !usesMemoryOf(transfer, run)) {
      return found(Outcome::failed, "sizes, figures or checked bytes are missing", otherBuild);
    }
    best = std::max(best, figure.gigabitsPerSecond);
    measured.push_back(figure);
  }
  figures.insert(figures.end(), measured.begin(), measured.end());
  return found(Outcome::passed,
               std::to_string(measured.size()) + " runs, up to " + rounded(best) + " Gb/s", "");
}

std::optional<MovedBytes> movedBytes(const std::optional<VfTraffic>& before,
                                     const std::optional<VfTraffic>& after) {
  if (!before || !after) {
    return std::nullopt;
  }
  // A VF that was removed and created again counts from zero.
  const auto moved = [](std::uint64_t first, std::uint64_t last) {
    return last > first ? last - first : 0;
  };
  return MovedBytes{moved(before->sentBytes, after->sentBytes),
                    moved(before->receivedBytes, after->receivedBytes)};
}

Finding judgeTraffic(const std::string& subject, const ClaimedBytes& claimed,
                     const std::optional<VfTraffic>& before,
                     const std::optional<VfTraffic>& after) {
  const std::string expected =
      "the VF's counters on the PF increase by at least " + bytesText(claimed.least, claimed);
  const auto seen = movedBytes(before, after);
  if (!seen) {
    return seenByHost({"counters", subject, Outcome::notObservable, expected,
                       "the PF's driver has no counters for VFs",
                       "check the counters with ip -s link show dev PF; try a newer driver"});
  }
  const bool enough = covers(*seen, claimed);
  return seenByHost(
      {"counters", subject, enough ? Outcome::passed : Outcome::failed, expected,
       bytesText(*seen, claimed),
       enough ? "" : "do not trust the guest's result: the data did not go through this VF"});
}

namespace {

// Whether a VF that moved this can have carried the data of one direction.
bool mayCarry(const MovedBytes& moved, const ClaimedBytes& claimed) {
  const bool sent = moved.sent >= claimed.least.sent;
  const bool received = moved.received >= claimed.least.received;
  return (sent && claimed.least.sent != 0) || (received && claimed.least.received != 0);
}

}  // namespace

Finding judgeOthers(const std::string& subject, const ClaimedBytes& claimed,
                    const std::vector<OtherVf>& others) {
  std::vector<std::string> idle;
  std::vector<std::string> busy;
  for (const auto& other : others) {
    const auto moved = movedBytes(other.before, other.after);
    const bool isIdle = moved && !mayCarry(*moved, claimed);
    (isIdle ? idle : busy)
        .push_back(other.name + (moved ? " " + bytesText(*moved, claimed) : " has no counters"));
  }
  const std::string expected = "no other VF of the domain moves " +
                               bytesText(claimed.least, claimed) + " during the transfer";
  if (busy.empty()) {
    return seenByHost({"other-vfs", subject, Outcome::passed, expected, join(idle, ", "), ""});
  }
  return seenByHost({"other-vfs", subject, Outcome::notObservable, expected,
                     join(busy, ", ") + ": cannot tell which VF carried the probe's data",
                     "stop other traffic of this VM, then run vfpass verify again"});
}

Finding settledTraffic(const Lease& lease, const ClaimedBytes& claimed,
                       const std::optional<VfTraffic>& before, const ReadTraffic& read) {
  const auto end = std::chrono::steady_clock::now() + deadlines::countersSettle;
  Finding found = judgeTraffic(lease.entry, claimed, before, read(lease));
  while (found.outcome == Outcome::failed && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    found = judgeTraffic(lease.entry, claimed, before, read(lease));
  }
  return found;
}

}  // namespace vfpass::verify
