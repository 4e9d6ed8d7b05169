#include <algorithm>

#include "vfpass/doctor/doctor.hpp"

namespace vfpass::doctor {
namespace {

// The acceptance of this finding that lasts longest; null if no acceptance applies.
const AcceptedFinding* acceptanceOf(const Finding& finding,
                                    const std::vector<AcceptedFinding>& accepted) {
  const AcceptedFinding* best = nullptr;
  for (const AcceptedFinding& each : accepted) {
    const bool applies =
        each.check == finding.key && (each.subject.empty() || each.subject == finding.subject);
    if (applies && (best == nullptr || each.until > best->until)) {
      best = &each;
    }
  }
  return best;
}

}  // namespace

void acceptFindings(const std::vector<AcceptedFinding>& accepted, const std::string& today,
                    std::vector<Diagnosis>& diagnoses) {
  for (Diagnosis& each : diagnoses) {
    const Outcome outcome = each.finding.outcome;
    const AcceptedFinding* found = outcome == Outcome::failed || outcome == Outcome::warning
                                       ? acceptanceOf(each.finding, accepted)
                                       : nullptr;
    if (found != nullptr) {
      each.acceptance = Acceptance{found->reason, found->until, found->until < today};
    }
  }
}

}  // namespace vfpass::doctor
