#pragma once

#include <optional>
#include <vector>

#include "guest_view.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::verify {

/// The finding when the guest's CUDA cannot be used; nullopt if it can. The remedy is ours: of the
/// guest's texts only the detail is shown. `nvlink` comes from the mapping and determines the
/// remedy for error 802 (CUDA_ERROR_SYSTEM_NOT_READY): the GPU is on a board with NVSwitches, and
/// its NVLink fabric has not been set up.
std::optional<Finding> judgeCuda(const GuestView& view, std::optional<NvlinkMode> nvlink);

/// Findings about GPUs that other devices cannot access as usual: without GPUDirect RDMA, or in MIG
/// mode. Empty if there is nothing to report. The last one has failed if RDMA is impossible with
/// every GPU that CUDA can use.
std::vector<Finding> judgeGpuLimits(const GuestView& view);

}  // namespace vfpass::verify
