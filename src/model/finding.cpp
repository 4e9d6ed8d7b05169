#include "vfpass/finding.hpp"

#include <numeric>

#include <algorithm>

namespace vfpass {

double AllPairs::aggregate() const {
  return std::accumulate(pairs.begin(), pairs.end(), 0.0,
                         [](double sum, const PairRate& pair) { return sum + pair.together; });
}

Outcome verdict(const VerifyReport& report) {
  const auto any = [&](Outcome outcome) {
    return std::ranges::any_of(report.findings,
                               [&](const Finding& each) { return each.outcome == outcome; });
  };
  if (any(Outcome::failed)) {
    return Outcome::failed;
  }
  return any(Outcome::notObservable) || !any(Outcome::passed) ? Outcome::notObservable
                                                              : Outcome::passed;
}

bool isAccepted(const Diagnosis& diagnosis) {
  return diagnosis.acceptance && !diagnosis.acceptance->expired;
}

bool isFailure(const Diagnosis& diagnosis) {
  return diagnosis.finding.outcome == Outcome::failed && !isAccepted(diagnosis);
}

std::string describeAcceptance(const Diagnosis& diagnosis) {
  if (!diagnosis.acceptance) {
    return {};
  }
  const auto& [reason, until, expired] = *diagnosis.acceptance;
  return (expired ? "the acceptance ended on " : "accepted until ") + until + ": " + reason;
}

std::string_view toString(Observer observer) {
  return observer == Observer::host ? "host" : "guest";
}

Finding seenByHost(Finding finding) {
  finding.observer = Observer::host;
  return finding;
}

std::string_view toString(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return "passed";
    case Outcome::failed:
      return "failed";
    case Outcome::notObservable:
      return "not observable";
    case Outcome::waived:
      return "waived";
    case Outcome::warning:
      return "warning";
  }
  return "";
}

}  // namespace vfpass
