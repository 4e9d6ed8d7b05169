#pragma once

#include <string>
#include <vector>

#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// What the host does with block devices (disks and their partitions) below the device at `path`,
/// which is relative to /sys/devices: mounted in our mount namespace, swap, part of a device mapper
/// or md device, or behind a loop device. One printable text each, at most 16.
std::vector<std::string> readBlockUses(const Root& root, const std::string& path);

/// The same with every mount namespace that `mounts` knows, and with the processes that have one of
/// the block devices open.
std::vector<std::string> readBlockUses(const Root& root, const std::string& path,
                                       const MountTable& mounts,
                                       const std::vector<Process>& processes);

/// Whether there is any block device below that device.
bool hasBlockDevice(const Root& root, const std::string& path);

}  // namespace vfpass::host
