#pragma once

#include <string>
#include <vector>

#include "vfpass/error.hpp"

namespace vfpass::plan {

/// A problem that prevents the requested operation. All problems are collected, so that the user
/// sees them at once.
struct Objection {
  std::string message;
  std::string remedy;
  ExitCode code = ExitCode::refused;
};

/// Moves the problems in `found` to the end of `objections`.
void append(std::vector<Objection> found, std::vector<Objection>& objections);

/// The exit code for several problems: bad input takes precedence over refusal, and refusal over
/// failure. `done` if there are none.
ExitCode worstCode(const std::vector<Objection>& objections);

/// Throws one Error that lists all problems; does nothing if there are none.
void throwObjections(const std::string& subject, const std::vector<Objection>& objections);

}  // namespace vfpass::plan
