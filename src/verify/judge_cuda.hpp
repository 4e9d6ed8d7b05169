#pragma once

#include <optional>
#include <string>

#include "vfpass/finding.hpp"
#include "vfpass/nvlink_mode.hpp"

namespace vfpass::verify {

/// CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized": the GPU is on a board with
/// NVSwitches, and its NVLink fabric has not been set up.
inline constexpr int cudaNotReady = 802;

/// The finding for CUDA failing to initialize with this status. `nvlink` comes from the mapping and
/// determines the remedy for error 802.
Finding judgeCudaStatus(int status, const std::string& detail, std::optional<NvlinkMode> nvlink);

}  // namespace vfpass::verify
