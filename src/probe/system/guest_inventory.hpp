#pragma once

#include <nlohmann/json_fwd.hpp>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// Whether NVIDIA's libraries, libcuda and NVML, are asked about GPUs. To initialize one as root
/// may load the modules of NVIDIA's driver, which then takes the GPUs that have no driver.
enum class GpuLibraries { ask, skip };

/// The guest's PCI functions, netdevs, RDMA devices and GPUs. Anything missing or unreadable is
/// described in its place and is never an error. docs/probe.md lists the members.
nlohmann::json readInventory(const SysfsReader& sysfs, GpuLibraries libraries = GpuLibraries::ask);

/// What changes when something fails: the counters of the RDMA devices, and the kernel's log.
/// Cheaper than readInventory(): opens no device and no GPU.
nlohmann::json readErrors(const SysfsReader& sysfs);

/// How much memory programs of ordinary users may lock, as configured: `login` by PAM (limits.conf,
/// limits.d), `services` and `user_services` by systemd (DefaultLimitMEMLOCK of system.conf and
/// user.conf). Each is null if nothing sets it, or `{soft, hard, file}`: bytes, null for no limit,
/// and only those that are set. `login_others` has the limits of named users and groups;
/// `memory_bytes` is the guest's memory.
nlohmann::json readMemoryLock(const SysfsReader& sysfs);

/// `{found, gid_index}` of /etc/nccl.conf: whether it can be read, and the value of
/// NCCL_IB_GID_INDEX there as NCCL reads it; null if it is not set, or leaves the choice to NCCL.
nlohmann::json readNcclSettings(const SysfsReader& sysfs);

/// The last lines of the kernel's log about RDMA, GPUs, PCI resources and the IOMMU, oldest first:
/// at most 48 of 256 bytes each, without time, and none that explains nothing. Control characters
/// are escaped. null: not readable, without root for example.
nlohmann::json readKernelLog(const SysfsReader& sysfs);

/// `[{release, missing}]`: installed kernels of the running one's flavour that are newer than it,
/// with those of the loaded RDMA and GPU modules that they lack (null: their list cannot be read).
/// At most 16.
nlohmann::json readNewerKernels(const SysfsReader& sysfs);

}  // namespace vfpass::probe
