#pragma once

#include <string>
#include <vector>

#include "vfpass/error.hpp"

namespace vfpass::plan {

/// A reason not to do what was asked. All of them are collected, so that the user sees every one at
/// once.
struct Objection {
  std::string message;
  std::string remedy;
  ExitCode code = ExitCode::refused;
};

/// The exit code of several: bad input before refusal before failure. `done` when there is none.
ExitCode worstCode(const std::vector<Objection>& objections);

/// Throws one Error that tells all objections; does nothing when there is none.
void throwObjections(const std::string& subject, const std::vector<Objection>& objections);

}  // namespace vfpass::plan
