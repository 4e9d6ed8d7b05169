#pragma once

#include <filesystem>

namespace vfpass::install {

/// Runs the program without arguments and input, as root and with an empty environment. Throws
/// (refused) if it cannot be loaded, is killed by a signal, or does not exit within seconds. Its
/// exit status does not matter otherwise: a hook without arguments has nothing to do.
void requireRuns(const std::filesystem::path& program);

}  // namespace vfpass::install
