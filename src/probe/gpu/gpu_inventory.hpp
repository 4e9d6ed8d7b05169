#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "system/pci_functions.hpp"

namespace vfpass::probe {

/// `{libcuda: {...}, devices: [...]}`: the GPUs as libcuda reports them, without using them, and as
/// PCI shows them, including those that libcuda does not report.
nlohmann::json gpuInventory(const std::vector<PciFunction>& functions);

/// `{driver_version, nvidia_peermem: {loaded, loadable}}` from the kernel.
nlohmann::json gpuKernelInventory(const SysfsReader& sysfs);

}  // namespace vfpass::probe
