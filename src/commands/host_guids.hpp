#pragma once

#include "commands.hpp"

namespace vfpass::commands {

/// Adds `guids` to the command `host`.
void addHostGuids(CLI::App& host, Runner& runner);

}  // namespace vfpass::commands
