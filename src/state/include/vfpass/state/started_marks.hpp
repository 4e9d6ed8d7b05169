#pragma once

#include <filesystem>
#include <vector>

#include "vfpass/identifiers.hpp"

namespace vfpass::state {

/// Marks this domain as just started: creates an empty file below `started/` in the run directory,
/// which a systemd path unit watches. The hook does nothing else, because libvirt waits for it.
/// Throws Error.
void markStarted(const std::filesystem::path& runDirectory, const Uuid& domain);

/// Returns the marked domains and removes the marks.
std::vector<Uuid> takeStarted(const std::filesystem::path& runDirectory);

}  // namespace vfpass::state
