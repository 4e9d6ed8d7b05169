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

}  // namespace vfpass::probe
