#include "first_broken.hpp"

#include <algorithm>

namespace vfpass::report {

const Finding* firstBroken(const VerifyReport& report) {
  for (const Outcome outcome : {Outcome::failed, Outcome::notObservable}) {
    const auto found = std::ranges::find(report.findings, outcome, &Finding::outcome);
    if (found != report.findings.end()) {
      return &*found;
    }
  }
  return nullptr;
}

}  // namespace vfpass::report
