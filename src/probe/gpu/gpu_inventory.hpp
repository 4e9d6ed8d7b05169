#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "system/sysfs_reader.hpp"
#include "vfpass/cuda_problem.hpp"

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

/// `{libcuda: {...}, devices: [...]}`: the GPUs as libcuda reports them, without using them, and as
/// PCI shows them, including those that libcuda does not report. A failure has a `code`
/// (vfpass/cuda_problem.hpp), for which `surroundings` is the evidence.
nlohmann::json gpuInventory(const std::vector<PciFunction>& functions,
                            const GpuSurroundings& surroundings,
                            const std::vector<std::string>& libraries);

/// The same as PCI alone shows it: loads no library of NVIDIA.
nlohmann::json pciGpuInventory(const std::vector<PciFunction>& functions);

/// `{driver_version, driver, nvidia_peermem: {loaded, loadable, interface}}` from the kernel.
nlohmann::json gpuKernelInventory(const SysfsReader& sysfs);

/// The cause of a failed cuInit: the same status has several, which the guest's kernel tells
/// apart. `status`: nullopt if libcuda could not be loaded. Pure.
CudaProblem diagnoseCuda(std::optional<int> status, const GpuSurroundings& surroundings);

}  // namespace vfpass::probe
