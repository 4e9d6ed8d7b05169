#pragma once

#include <filesystem>
#include <optional>

#include "vfpass/hand_over.hpp"

namespace vfpass::state {

/// What `vfpass host apply` has applied of `gpu-memory-check` since the host started. The hook
/// reads no YAML, so that a file in the run directory says it: off without that file, or if it
/// cannot be read.
MemoryChecks memoryChecks(const std::filesystem::path& runDirectory);

/// The same for a report: nullopt if this user cannot tell, such as one who may not enter the run
/// directory.
std::optional<MemoryChecks> observedMemoryChecks(const std::filesystem::path& runDirectory);

/// Applies it. Throws Error.
void setMemoryChecks(const std::filesystem::path& runDirectory, MemoryChecks checks);

}  // namespace vfpass::state
