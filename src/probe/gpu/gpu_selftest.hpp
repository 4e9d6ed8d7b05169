#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "gpu/gpu_choice.hpp"

namespace vfpass::probe {

/// Parameters of the self-test.
struct GpuSelfTest {
  GpuChoice gpu = 0;
  std::uint64_t bytes = std::uint64_t{8} << 30U;  ///< of the large buffer
  int rounds = 10;                                ///< timed rounds
};

/// Tests the GPU's half without RDMA: pattern and check at every alignment, flipped bits, also
/// beyond 4 GiB, DMA-BUF export, and bandwidth. `passed` in the result covers everything except the
/// export and the bandwidths, which are only reported. Throws Error if there is no GPU.
nlohmann::json gpuSelfTest(const GpuSelfTest& wanted);

}  // namespace vfpass::probe
