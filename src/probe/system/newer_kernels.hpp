#pragma once

#include <nlohmann/json_fwd.hpp>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// `[{release, missing}]`: installed kernels of the running one's flavour that are newer than it,
/// with those of the loaded RDMA and GPU modules that they lack (null: their list cannot be read).
/// At most 16.
nlohmann::json readNewerKernels(const SysfsReader& sysfs);

}  // namespace vfpass::probe
