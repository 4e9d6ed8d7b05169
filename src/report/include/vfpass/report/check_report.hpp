#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/report/style.hpp"

namespace vfpass::report {

/// One mapping file and all that is to be said about it.
struct CheckEntry {
  std::string vm;                           ///< empty when the file could not be read that far
  std::string file;                         ///< empty for mistakes that belong to no single file
  std::vector<std::string> problems;        ///< mistakes in the file: `file:line:column: ...`
  std::vector<std::string> objections;      ///< why this host cannot serve it
  std::optional<std::size_t> pendingSteps;  ///< steps that attach would run; none: host not asked
  std::vector<std::string> facts = {};      ///< about its devices, whether it can be had or not
};

/// `vfpass check`: a verdict for each mapping, followed by every mistake and every objection.
/// JSON: docs/json/check.schema.json.
void writeCheck(std::ostream& out, const std::vector<CheckEntry>& entries, const Style& style);

}  // namespace vfpass::report
