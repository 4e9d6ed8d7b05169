#pragma once

#include <optional>

#include "gpu/gpu_inventory.hpp"
#include "vfpass/cuda_problem.hpp"

namespace vfpass::probe {

/// The cause of a failed cuInit: the same status has several, which the guest's kernel tells
/// apart. `status`: nullopt if libcuda could not be loaded. Pure.
CudaProblem diagnoseCuda(std::optional<int> status, const GpuSurroundings& surroundings);

}  // namespace vfpass::probe
