#pragma once

#include <nlohmann/json_fwd.hpp>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// The last lines of the kernel's log about RDMA, GPUs, PCI resources and the IOMMU, oldest first:
/// at most 48 of 256 bytes each, without time, and none that explains nothing. Control characters
/// are escaped. null: not readable, without root for example.
nlohmann::json readKernelLog(const SysfsReader& sysfs);

/// `[{release, missing}]`: installed kernels of the running one's flavour that are newer than it,
/// with those of the loaded RDMA and GPU modules that they lack (null: their list cannot be read).
/// At most 16.
nlohmann::json readNewerKernels(const SysfsReader& sysfs);

}  // namespace vfpass::probe
