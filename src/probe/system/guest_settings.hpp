#pragma once

#include <nlohmann/json_fwd.hpp>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// How much memory programs of ordinary users may lock, as configured: `login` by PAM (limits.conf,
/// limits.d), `services` and `user_services` by systemd (DefaultLimitMEMLOCK of system.conf and
/// user.conf). Each is null if nothing sets it, or `{soft, hard, file}`: bytes, null for no limit,
/// and only those that are set. `login_others` has the limits of named users and groups;
/// `memory_bytes` is the guest's memory.
nlohmann::json readMemoryLock(const SysfsReader& sysfs);

/// `{found, gid_index}` of /etc/nccl.conf: whether it can be read, and the value of
/// NCCL_IB_GID_INDEX there as NCCL reads it; null if it is not set, or leaves the choice to NCCL.
nlohmann::json readNcclSettings(const SysfsReader& sysfs);

}  // namespace vfpass::probe
