#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/finding.hpp"

namespace vfpass::report {

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
void writeVerifyHtml(std::ostream& out, const VerifyReport& report, const std::string& svg,
                     const std::vector<PastVerification>& history);

/// `vfpass topo --html`: the picture, and the same in words (writeTopologyMatrix or
/// writeTopologyTree).
void writeTopologyHtml(std::ostream& out, const std::string& title, const std::string& svg,
                       const std::string& words);

}  // namespace vfpass::report
