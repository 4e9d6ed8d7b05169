#pragma once

#include <optional>
#include <string>

#include "vfpass/finding.hpp"
#include "vfpass/nvlink_mode.hpp"

namespace vfpass::guest {

/// CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized": the GPU is one of a board with
/// NVSwitches, and its NVLink fabric has not been set up.
inline constexpr int cudaNotReady = 802;

/// The finding for CUDA that refuses to start with this status. `nvlink` is what the mapping says;
/// of a 802 the remedy follows from it.
Finding judgeCudaStatus(int status, const std::string& detail, std::optional<NvlinkMode> nvlink);

}  // namespace vfpass::guest
