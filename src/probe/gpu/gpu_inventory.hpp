#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gpu/diagnose_cuda.hpp"
#include "system/pci_functions.hpp"

namespace vfpass::probe {

/// `{libcuda: {...}, devices: [...]}`: the GPUs as libcuda reports them, without using them, and as
/// PCI shows them, including those that libcuda does not report. A failure has a `code`
/// (vfpass/cuda_problem.hpp), for which `surroundings` is the evidence.
nlohmann::json gpuInventory(const std::vector<PciFunction>& functions,
                            const GpuSurroundings& surroundings,
                            const std::vector<std::string>& libraries);

/// `{driver_version, nvidia_peermem: {loaded, loadable}}` from the kernel.
nlohmann::json gpuKernelInventory(const SysfsReader& sysfs);

}  // namespace vfpass::probe
