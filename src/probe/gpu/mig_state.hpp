#pragma once

#include <string>
#include <vector>

namespace vfpass::probe {

/// Multi-Instance GPU state of one GPU.
struct MigState {
  std::string pci;  ///< as NVML writes it
  bool enabled = false;
  unsigned instances = 0;  ///< MIG devices, which CUDA can use in place of the GPU
};

/// The GPUs that support MIG, from NVML, which needs no CUDA: with MIG enabled and no instance CUDA
/// does not initialize. Empty if there is no NVML or no driver.
std::vector<MigState> readMigStates(const std::vector<std::string>& libraries = {
                                        "libnvidia-ml.so.1",
                                        "/usr/local/nvidia/lib64/libnvidia-ml.so.1"});

}  // namespace vfpass::probe
