#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/baseline.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// `vfpass verify`: the first problem with its remedy, then all checks and measurements. JSON:
/// docs/json/verify.schema.json.
void writeVerify(std::ostream& out, const VerifyReport& report, const Style& style);

/// JUnit XML, with a test case per check; an unobservable check is an error, a waived one is
/// skipped.
void writeVerifyJunit(std::ostream& out, const VerifyReport& report);

/// Shortens the findings' texts, which may come from the guest: each one, and all of them together.
/// A shortened text says so. A report then stays small enough to be read again, whatever a guest
/// replies.
void boundTexts(VerifyReport& report);

/// Summary of a saved report (JSON of writeVerify): `passed, 2026-11-21T09:40:00Z`. nullopt if it
/// is missing or invalid.
std::optional<std::string> lastVerification(const std::optional<std::string>& json);

/// A saved report (JSON of writeVerify) as far as it is valid: findings have key, subject, observer
/// and outcome; figures and findings that cannot be read are missing.
struct SavedVerification {
  std::string result;  ///< `passed`, `failed`, `not_observable`
  VerifyReport report;
};

/// nullopt if it is invalid as a whole.
std::optional<SavedVerification> readVerification(const std::string& json);

/// A kept report of an earlier verification.
struct PastVerification {
  std::string time;
  std::string result;   ///< `passed`, `failed`, `not observable`
  std::string problem;  ///< its first problem, or why it cannot be read; may be empty
};

/// What a saved report (JSON of writeVerify) says. An unreadable one has only a problem.
PastVerification readPastVerification(const std::string& json);

/// `vfpass verify --html`: verdict, first problem, all findings, figures beside their limits, the
/// picture `svg` of host and guest (writeTopologySvg; may be empty), and earlier verifications.
/// Checks that found no problem are folded. `origin`: host and versions, in words; may be empty.
void writeVerifyHtml(std::ostream& out, const VerifyReport& report, const std::string& svg,
                     const std::vector<PastVerification>& history, const std::string& origin = "");

/// `vfpass verify --baseline`: the figures of a PF on the host itself. JSON:
/// docs/json/baseline.schema.json, which is also what is kept.
void writeBaseline(std::ostream& out, const Baseline& baseline, const Style& style);

/// A kept baseline (JSON of writeBaseline). Figures that cannot be read are missing; nullopt if it
/// is invalid as a whole.
std::optional<Baseline> readBaseline(const std::string& json);

}  // namespace vfpass::report
