#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "vfpass/finding.hpp"
#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// `vfpass verify`: the first broken link first, with its remedy; then every check and the figures.
/// JSON: docs/json/verify.schema.json.
void writeVerify(std::ostream& out, const VerifyReport& report, const Style& style);

/// The same for test runners: JUnit XML, a test case for each check; one that could not be made is
/// an error, and a waived one is skipped.
void writeVerifyJunit(std::ostream& out, const VerifyReport& report);

/// One phrase about a kept report (writeVerify's JSON): `passed, 2026-11-21T09:40:00Z`. Nullopt
/// when there is none or it makes no sense.
std::optional<std::string> lastVerification(const std::optional<std::string>& json);

}  // namespace vfpass::report
