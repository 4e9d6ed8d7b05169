#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/mig_state.hpp"
#include "system/pci_functions.hpp"
#include "vfpass/cuda_problem.hpp"

namespace vfpass::probe {

/// What the guest's kernel shows about its GPUs.
struct GpuSurroundings {
  std::vector<PciFunction> gpus;
  std::string moduleVersion;  ///< of nvidia; empty: not loaded
  bool uvm = false;           ///< nvidia_uvm is loaded, and its device file exists
  std::vector<MigState> mig;
};

/// Does not need CUDA.
GpuSurroundings readGpuSurroundings(const SysfsReader& sysfs,
                                    const std::vector<PciFunction>& functions);

/// The cause of a failed cuInit: the same status has several, which the guest's kernel tells
/// apart. `status`: nullopt if libcuda could not be loaded. Pure.
CudaProblem diagnoseCuda(std::optional<int> status, const GpuSurroundings& surroundings);

}  // namespace vfpass::probe
