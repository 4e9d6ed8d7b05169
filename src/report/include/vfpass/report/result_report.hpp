#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "vfpass/error.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::report {

/// What a command that changes something has done, for programs. People read the same in the lines
/// on stderr while it happens.
struct Result {
  std::string command;         ///< as on the command line: `attach`
  std::vector<Plan> executed;  ///< completely, in this order
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  std::vector<Error> failures;  ///< of parts, where the command continued with the others
};

/// JSON only: docs/json/result.schema.json.
void writeResult(std::ostream& out, const Result& result);

/// The document of a command that failed. JSON only: docs/json/error.schema.json.
void writeError(std::ostream& out, const Error& error);

}  // namespace vfpass::report
