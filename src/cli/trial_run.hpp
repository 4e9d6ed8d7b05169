#pragma once

#include <filesystem>

namespace vfpass::cli {

/// Starts the program without arguments and input, as root and with an empty environment, and
/// throws (refused) when it cannot be loaded, dies of a signal, or does not end within seconds.
/// What it answers does not matter: a hook without arguments has nothing to do.
void requireRuns(const std::filesystem::path& program);

}  // namespace vfpass::cli
