#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// vfio-pci or a vendor's variant of it that this project knows: those of mlx5 VFs and of Grace
/// GPUs. No other name makes vfpass load a module.
bool isVfioDriver(std::string_view driver);

/// Files below /dev/vfio that some process holds open: `/dev/vfio/12` for a group,
/// `/dev/vfio/devices/vfio3` for a device; and who that is, printable, as
/// `qemu-system-x86 (pid 4711), guest train0`: the process's own word.
using VfioUsers = std::map<std::string, std::string>;

/// Found in /proc, because opening a group to see whether that gives EBUSY would, for that moment,
/// make a VM that is just starting fail with EBUSY itself. Empty on a captured tree: snapshots hold
/// no processes.
VfioUsers readVfioUsers(const Root& root);

/// Who holds this function; nullopt: nobody.
std::optional<std::string> vfioUserOf(const Root& root, const PciAddress& function,
                                      const VfioUsers& users);

}  // namespace vfpass::host
