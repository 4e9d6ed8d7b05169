#pragma once

#include <nlohmann/json_fwd.hpp>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// `{found, gid_index}` of /etc/nccl.conf: whether it can be read, and the value of
/// NCCL_IB_GID_INDEX there as NCCL reads it; null if it is not set, or leaves the choice to NCCL.
nlohmann::json readNcclSettings(const SysfsReader& sysfs);

}  // namespace vfpass::probe
