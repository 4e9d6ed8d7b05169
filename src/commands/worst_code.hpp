#pragma once

#include <vector>

#include "vfpass/error.hpp"

namespace vfpass::commands {

/// The exit code of a command of several parts, of those of its parts: the first of these that one
/// of them has (docs/commands.md): 2, 5, 1, 4, 6, 3, otherwise 0. What the administrator has to
/// decide comes before what another try may resolve.
ExitCode worstOf(const std::vector<ExitCode>& codes);

}  // namespace vfpass::commands
