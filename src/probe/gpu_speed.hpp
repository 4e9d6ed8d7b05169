#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "gpu.hpp"

namespace vfpass::probe {

/// How fast the kernels are beside cuMemsetD32 of the same bytes, in interleaved rounds of one run.
/// Times are the GPU's own, between two events; bandwidths count each byte once.
nlohmann::json measureKernels(const std::shared_ptr<const Gpu>& gpu, std::uint64_t bytes,
                              int rounds);

}  // namespace vfpass::probe
