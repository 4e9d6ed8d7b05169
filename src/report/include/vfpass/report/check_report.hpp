#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/report/table.hpp"

namespace vfpass::report {

/// One mapping file and the results of its check.
struct CheckEntry {
  std::string vm;                           ///< empty if the file is unreadable up to there
  std::string file;                         ///< empty for problems with several files
  std::vector<std::string> problems;        ///< errors in the file: `file:line:column: ...`
  std::vector<std::string> objections;      ///< why it cannot be attached on this host
  std::optional<std::size_t> pendingSteps;  ///< steps that attach would run; nullopt: not checked
  std::vector<std::string> facts = {};      ///< about its devices, attachable or not
  bool isHostPolicy = false;                ///< the file is a host.yaml
};

/// `vfpass check`: a verdict per mapping, followed by every error in the file and every problem
/// with this host. JSON: docs/json/check.schema.json.
void writeCheck(std::ostream& out, const std::vector<CheckEntry>& entries, const Style& style);

}  // namespace vfpass::report
