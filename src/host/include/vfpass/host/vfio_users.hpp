#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vfpass/base/driver_name.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/peer_mapping.hpp"

namespace vfpass::host {

using vfpass::isVfioDriver;

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

/// By which file some process holds this function; nullopt: by none that is seen. A process that
/// opens a group can also have an iommufd behind it (CONFIG_IOMMUFD_VFIO_CONTAINER), which QEMU
/// never asks for.
std::optional<VfioBackend> openBackendOf(const Root& root, const PciAddress& function,
                                         const VfioUsers& users);

}  // namespace vfpass::host
