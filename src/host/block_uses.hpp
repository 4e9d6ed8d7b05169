#pragma once

#include <string>
#include <vector>

#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// What the host does with block devices (disks and their partitions) below the device at `path`,
/// which is relative to /sys/devices: mounted in our mount namespace, swap, or part of a device
/// mapper or md device. One printable text each, at most 16.
std::vector<std::string> readBlockUses(const Root& root, const std::string& path);

}  // namespace vfpass::host
