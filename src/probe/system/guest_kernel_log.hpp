#pragma once

#include <nlohmann/json_fwd.hpp>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// The last lines of the kernel's log about RDMA, GPUs, PCI resources and the IOMMU, oldest first:
/// at most 48 of 256 bytes each, without time, and none that explains nothing. Control characters
/// are escaped. null: not readable, without root for example.
nlohmann::json readKernelLog(const SysfsReader& sysfs);

}  // namespace vfpass::probe
