#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "gpu/open_gpu.hpp"

namespace vfpass::probe {

/// Measures the kernels against cuMemsetD32 of the same bytes, in interleaved rounds of one run.
/// Times are taken on the GPU, between two events; bandwidths count each byte once.
nlohmann::json measureKernels(const std::shared_ptr<const Gpu>& gpu, std::uint64_t bytes,
                              int rounds);

}  // namespace vfpass::probe
