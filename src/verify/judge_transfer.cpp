#include "judge_transfer.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "vfpass/agent/reply.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::verify {
namespace {

using Json = nlohmann::json;

constexpr const char* otherBuild = "check that the guest runs the probe of this vfpass build";

const Json& at(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

std::uint64_t count(const Json& object, const char* name) {
  const Json& value = at(object, name);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

std::string rounded(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

// The owner of the written memory checks: the target for a write, the initiator for a read.
std::uint64_t checkedBytes(const Json& run) {
  const Json& owners = at(run, "owners");
  return std::max(count(at(owners, "initiator"), "bytes_checked"),
                  count(at(owners, "target"), "bytes_checked"));
}

std::string firstCorruption(const Json& run) {
  for (const char* owner : {"target", "initiator"}) {
    for (const Json& each : agent::listMember(at(at(run, "owners"), owner), "corruptions")) {
      return agent::textMember(each, "damage") + " in message " +
             std::to_string(count(each, "message")) + " at offset " +
             std::to_string(count(each, "offset"));
    }
  }
  return "wrong bytes";
}

// 0 for a missing or invalid figure.
double positive(const Json& object, const char* name) {
  const Json& value = at(object, name);
  const double figure = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(figure) && figure > 0 ? figure : 0;
}

double gigabits(const Json& run) { return positive(at(run, "bandwidth"), "gigabits_per_second"); }

Finding finding(const Transfer& transfer, Outcome outcome, const std::string& seen,
                const std::string& remedy) {
  return {"data-" + transfer.memory,
          transfer.subject,
          outcome,
          transfer.operation + " of " + std::to_string(transfer.bytes()) + " bytes, all correct" +
              (transfer.relaxedOrdering ? ", relaxed ordering" : ""),
          seen,
          remedy};
}

// Whether the run used this memory: with `besideHost`, a host memory run comes first.
bool usesMemoryOf(const Transfer& transfer, const Json& run) {
  const Json& memory = at(run, "memory");
  return agent::textMember(at(memory, "initiator"), "kind") == transfer.memory &&
         agent::textMember(at(memory, "target"), "kind") == transfer.memory;
}

// ` via DMA-BUF`, and the mechanisms that failed before.
std::string mechanismOf(const Json& run) {
  const Json& memory = at(at(run, "memory"), "target");
  std::string text = " via " + agent::textMember(memory, "road");
  for (const Json& each : agent::listMember(memory, "not_taken")) {
    text += each.is_string() ? ", not via " + each.get<std::string>() : "";
  }
  return text;
}

/// The first problem of a report apart from its figures; nullopt: none.
std::optional<Finding> findProblem(const Transfer& transfer, const Json& report,
                                   std::size_t wantedRuns) {
  const Json& runs = agent::listMember(report, "runs");
  if (runs.size() != wantedRuns) {
    const std::string error = agent::textMember(report, "error");
    return finding(transfer, Outcome::failed, error.empty() ? "no report" : error,
                   agent::textMember(report, "remedy"));
  }
  for (const Json& run : runs) {
    if (!agent::flagMember(report, "passed") &&
        (!agent::flagMember(run, "passed") || runs.size() == 1)) {
      return finding(
          transfer, Outcome::failed, firstCorruption(run),
          "compare firmware and driver with those of a working host: the device or its driver "
          "corrupts data");
    }
  }
  return agent::flagMember(report, "passed")
             ? std::nullopt
             : std::optional(finding(transfer, Outcome::failed,
                                     "the probe reported a failure without a cause", otherBuild));
}

}  // namespace

Finding judgeTransfer(const Transfer& transfer, const Json& report, std::vector<Figure>& figures) {
  if (auto problem = findProblem(transfer, report, transfer.besideHost ? 2 : 1)) {
    return *std::move(problem);
  }
  const Json& runs = agent::listMember(report, "runs");
  const Json& run = runs.back();
  const std::uint64_t checked = checkedBytes(run);
  if (checked < transfer.bytes()) {
    return finding(transfer, Outcome::failed,
                   "only " + std::to_string(checked) + " bytes were checked", otherBuild);
  }
  const bool onGpu = transfer.memory == "gpu";
  if (onGpu && !usesMemoryOf(transfer, run)) {
    return finding(transfer, Outcome::failed, "the probe did not use GPU memory", otherBuild);
  }
  Figure figure;
  figure.subject = transfer.subject;
  figure.operation = transfer.operation;
  figure.memory = transfer.memory;
  figure.messageBytes = transfer.messageBytes;
  figure.checkedBytes = checked;
  figure.gigabitsPerSecond = gigabits(run);
  figure.relaxedOrdering = transfer.relaxedOrdering;
  if (transfer.besideHost && gigabits(runs.front()) > 0) {
    figure.besideHost = gigabits(runs.front());
  }
  figures.push_back(figure);
  return finding(transfer, Outcome::passed,
                 rounded(figure.gigabitsPerSecond) + " Gb/s" + (onGpu ? mechanismOf(run) : ""), "");
}

Finding judgeLatency(const Transfer& transfer, const Json& report, std::vector<Figure>& figures) {
  const std::string expected =
      "read and send of " + std::to_string(transfer.messageBytes) + " bytes, all correct";
  const auto found = [&](Outcome outcome, const std::string& seen, const std::string& remedy) {
    return Finding{"latency-" + transfer.memory, transfer.subject, outcome, expected, seen, remedy};
  };
  constexpr std::size_t kinds = 2;  // read and send
  if (const auto problem = findProblem(transfer, report, transfer.besideHost ? 2 * kinds : kinds)) {
    return found(Outcome::failed, problem->seen, problem->remedy);
  }
  std::string seen;
  for (const Json& run : agent::listMember(report, "runs")) {
    Figure figure;
    figure.subject = transfer.subject;
    figure.operation = agent::textMember(at(run, "settings"), "operation");
    figure.memory = agent::textMember(at(at(run, "memory"), "target"), "kind");
    figure.messageBytes = transfer.messageBytes;
    figure.checkedBytes = checkedBytes(run);
    figure.medianMicroseconds = positive(at(run, "latency"), "median");
    figure.tailMicroseconds = positive(at(run, "latency"), "p99");
    const bool known = (figure.operation == "read" || figure.operation == "send") &&
                       (figure.memory == "host" || figure.memory == "gpu");
    if (!known || *figure.medianMicroseconds == 0 || figure.checkedBytes < transfer.bytes()) {
      return found(Outcome::failed, "figures or checked bytes are missing", otherBuild);
    }
    seen += (seen.empty() ? "" : "; ") + figure.memory + " " + figure.operation + " " +
            rounded(*figure.medianMicroseconds) + " us, 99 % within " +
            rounded(*figure.tailMicroseconds);
    // Figures of host memory are added by its own finding.
    if (figure.memory == transfer.memory) {
      figures.push_back(figure);
    }
  }
  return found(Outcome::passed, seen, "");
}

std::optional<std::uint64_t> movedBytes(const std::optional<VfTraffic>& before,
                                        const std::optional<VfTraffic>& after) {
  if (!before || !after) {
    return std::nullopt;
  }
  // A VF that was removed and created again counts from zero.
  const auto moved = [](std::uint64_t first, std::uint64_t last) {
    return last > first ? last - first : 0;
  };
  return std::max(moved(before->sentBytes, after->sentBytes),
                  moved(before->receivedBytes, after->receivedBytes));
}

Finding judgeTraffic(const std::string& subject, std::uint64_t claimedBytes,
                     const std::optional<VfTraffic>& before,
                     const std::optional<VfTraffic>& after) {
  const std::string expected =
      "the VF's counters on the PF increase by at least " + std::to_string(claimedBytes) + " bytes";
  const auto seen = movedBytes(before, after);
  if (!seen) {
    return {"counters",
            subject,
            Outcome::notObservable,
            expected,
            "the PF's driver has no counters for VFs",
            "check the counters with ip -s link show dev PF; try a newer driver"};
  }
  const bool enough = *seen >= claimedBytes;
  return {"counters",
          subject,
          enough ? Outcome::passed : Outcome::failed,
          expected,
          std::to_string(*seen) + " bytes",
          enough ? "" : "do not trust the guest's result: the data did not go through this VF"};
}

}  // namespace vfpass::verify
