#pragma once

#include <string>
#include <vector>

#include "holders/function_facts.hpp"
#include "holders/mount_table.hpp"
#include "holders/processes.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// Uses of the function's block devices.
std::vector<Holder> blockHolders(const Root& root, const FunctionFacts& function,
                                 const MountTable& mounts, const std::vector<Process>& processes);

/// Uses of the block devices (disks and partitions) below the device at `path`, which is relative
/// to /sys/devices: mounted in our mount namespace, swap, part of a device mapper or md device, or
/// backing a loop device. One printable text each, at most 16.
std::vector<std::string> readBlockUses(const Root& root, const std::string& path);

/// Also checks every mount namespace in `mounts`, and the processes that have one of the block
/// devices open.
std::vector<std::string> readBlockUses(const Root& root, const std::string& path,
                                       const MountTable& mounts,
                                       const std::vector<Process>& processes);

}  // namespace vfpass::host
