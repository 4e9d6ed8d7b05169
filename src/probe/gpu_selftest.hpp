#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace vfpass::probe {

/// What the self-test does.
struct GpuSelfTest {
  int gpu = 0;
  std::uint64_t bytes = std::uint64_t{8} << 30U;  ///< of the large buffer
  int rounds = 10;                                ///< timed ones
};

/// The GPU's half without RDMA: pattern and check at every alignment, bits turned over on purpose,
/// also beyond 4 GiB, DMA-BUF export, and bandwidth. `passed` in the result is the verdict of all
/// but the export and the speeds, which are reported only. Throws Error when there is no GPU.
nlohmann::json gpuSelfTest(const GpuSelfTest& wanted);

}  // namespace vfpass::probe
