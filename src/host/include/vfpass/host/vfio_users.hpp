#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// vfio-pci or a vendor's variant of it (mlx5_vfio_pci).
bool isVfioDriver(std::string_view driver);

/// Files below /dev/vfio that some process holds open: `12` for a group, `devices/vfio3` for a
/// device; and who that is, as `qemu-system-x86 (pid 4711), guest train0`: the process's own word.
using VfioUsers = std::map<std::string, std::string>;

/// Found in /proc, because opening a group to see whether that gives EBUSY would, for that moment,
/// make a VM that is just starting fail with EBUSY itself. Empty on a captured tree: snapshots hold
/// no processes.
VfioUsers readVfioUsers(const Root& root);

/// Who holds this function; nullopt: nobody.
std::optional<std::string> vfioUserOf(const Root& root, const PciAddress& function,
                                      const VfioUsers& users);

}  // namespace vfpass::host
