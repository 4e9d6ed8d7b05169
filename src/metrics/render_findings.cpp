#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "render_parts.hpp"
#include "vfpass/size_figures.hpp"

namespace vfpass::metrics {
namespace {

constexpr std::array outcomes{Outcome::passed, Outcome::failed, Outcome::notObservable,
                              Outcome::waived, Outcome::warning};
constexpr std::array results{"passed", "failed", "not_observable", "unreadable"};

bool isProblem(Outcome outcome) {
  return outcome == Outcome::failed || outcome == Outcome::warning;
}

// `2026-11-21T09:40:00Z`; nullopt for any other form.
std::optional<std::uint64_t> secondsOf(const std::string& time) {
  std::tm parts{};
  const char* end = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  const std::time_t seconds = end != nullptr && *end == '\0' ? ::timegm(&parts) : -1;
  return seconds < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(seconds));
}

double bytesPerSecond(double gigabits) { return std::round(gigabits * 1e9 / 8); }

// Nanoseconds are finer than any measurement.
double secondsOfMicroseconds(double microseconds) { return std::round(microseconds * 1e3) / 1e9; }

/// The metrics of one VM.
class VerificationWriter {
 public:
  VerificationWriter(const Verification& verification, Exposition& target)
      : verification_(verification), uuid_(toString(verification.domain)), target_(target) {}

  void write() {
    const std::string& vm = verification_.domainName;
    target_.add(families::verifyPending, {uuid_, vm}, std::uint64_t{verification_.pending});
    if (!verification_.hasReport) {
      return;
    }
    const auto& saved = verification_.saved;
    for (const std::string result : results) {
      const bool applies = saved ? saved->result == result : result == "unreadable";
      target_.add(families::verifyResult, {result, uuid_, vm}, std::uint64_t{applies});
    }
    if (saved) {
      if (const auto seconds = secondsOf(saved->report.time)) {
        target_.add(families::verifyTime, {uuid_, vm}, *seconds);
      }
      writeFindings(saved->report.findings);
      writeFigures(saved->report.figures);
    }
  }

 private:
  void writeFindings(const std::vector<Finding>& findings) {
    std::map<std::string, std::map<Outcome, std::uint64_t>> counts;  // by entry
    for (const Finding& each : findings) {
      ++counts[each.subject][each.outcome];
      if (isProblem(each.outcome)) {
        target_.add(families::verifyProblem,
                    {each.key, each.subject, std::string(toString(each.observer)),
                     labelOf(each.outcome), uuid_, verification_.domainName},
                    std::uint64_t{1});
      }
    }
    for (auto& [entry, byOutcome] : counts) {
      for (const Outcome outcome : outcomes) {
        target_.add(families::verifyFindings,
                    {entry, labelOf(outcome), uuid_, verification_.domainName}, byOutcome[outcome]);
      }
    }
  }

  // A series of message sizes is for a report, not for a time series.
  void writeFigures(const std::vector<Figure>& figures) {
    std::size_t count = 0;
    for (const Figure& each : figures) {
      if (each.source == sizeFigures || count == mostFigures) {
        continue;
      }
      ++count;
      if (each.medianMicroseconds) {
        writeLatency(each);
      } else {
        writeBandwidth(each);
      }
    }
  }

  void writeBandwidth(const Figure& figure) {
    const std::vector<std::string> labels{
        figure.subject,          figure.gpu,
        figure.memory,           std::to_string(figure.messageBytes),
        figure.operation,        figure.relaxedOrdering ? "yes" : "no",
        figure.source,           uuid_,
        verification_.domainName};
    target_.add(families::verifyBandwidth, labels, bytesPerSecond(figure.gigabitsPerSecond));
    if (figure.limit) {
      target_.add(families::verifyLimit, labels, bytesPerSecond(*figure.limit));
    }
  }

  void writeLatency(const Figure& figure) {
    const auto add = [&](const char* statistic, double microseconds) {
      target_.add(families::verifyLatency,
                  {figure.subject, figure.gpu, figure.memory, std::to_string(figure.messageBytes),
                   figure.operation, figure.source, statistic, uuid_, verification_.domainName},
                  secondsOfMicroseconds(microseconds));
    };
    add("median", *figure.medianMicroseconds);
    if (figure.tailMicroseconds) {
      add("p99", *figure.tailMicroseconds);
    }
  }

  const Verification& verification_;
  std::string uuid_;
  Exposition& target_;
};

}  // namespace

void addDoctor(const Observation& observation, Exposition& target) {
  if (!observation.diagnoses) {
    return;
  }
  for (const Outcome outcome : outcomes) {
    const auto count = std::ranges::count_if(*observation.diagnoses, [&](const Diagnosis& each) {
      return each.finding.outcome == outcome;
    });
    target.add(families::doctorFindings, {labelOf(outcome)}, static_cast<std::uint64_t>(count));
  }
  for (const Diagnosis& each : *observation.diagnoses) {
    if (isProblem(each.finding.outcome)) {
      target.add(families::doctorProblem,
                 {each.finding.key, labelOf(each.finding.outcome), each.finding.subject},
                 std::uint64_t{1});
    }
  }
}

void addVerifications(const Observation& observation, Exposition& target) {
  for (const Verification& each : observation.verifications) {
    VerificationWriter(each, target).write();
  }
}

}  // namespace vfpass::metrics
