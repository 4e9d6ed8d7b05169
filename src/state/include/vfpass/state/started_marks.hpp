#pragma once

#include <filesystem>
#include <vector>

#include "vfpass/identifiers.hpp"

namespace vfpass::state {

/// Says that this domain has just started: an empty file below `started/` in the run folder, which
/// a systemd path unit watches. The hook does no more, because libvirt waits for it. Throws Error.
void markStarted(const std::filesystem::path& runDirectory, const Uuid& domain);

/// The domains that were marked; each is told once.
std::vector<Uuid> takeStarted(const std::filesystem::path& runDirectory);

}  // namespace vfpass::state
