#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "pci_functions.hpp"

namespace vfpass::probe {

/// `{libcuda: {...}, devices: [...]}`: what libcuda says of the GPUs, without using them, and what
/// PCI says, also of GPUs that libcuda does not know.
nlohmann::json gpuInventory(const std::vector<PciFunction>& functions);

/// `{driver_version, nvidia_peermem: {loaded, loadable}}` from the kernel.
nlohmann::json gpuKernelInventory(const SysfsReader& sysfs);

}  // namespace vfpass::probe
