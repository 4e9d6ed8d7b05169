#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/base/driver_name.hpp"
#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/peer_mapping.hpp"

namespace vfpass::host {

using vfpass::isVfioDriver;

/// Open VFIO files, by the name that udev gives them (`/dev/vfio/12` for a group,
/// `/dev/vfio/devices/vfio3` for a device) whatever name they were opened by, and a process that
/// has them open, as it describes itself; printable: `qemu-system-x86 (pid 4711), guest train0`.
using VfioUsers = std::map<std::string, std::string>;

/// Searches /proc. Opening a group to test for EBUSY instead could make a VM that is starting at
/// that moment fail with EBUSY. Empty on a captured tree, because snapshots contain no processes.
VfioUsers readVfioUsers(const Root& root);

/// The process that holds this function; nullopt: none.
std::optional<std::string> vfioUserOf(const Root& root, const PciAddress& function,
                                      const VfioUsers& users);

/// The backend through which a process holds this function; nullopt: no holder is observed. A group
/// can also be backed by iommufd (CONFIG_IOMMUFD_VFIO_CONTAINER), which QEMU never requests.
std::optional<VfioBackend> openBackendOf(const Root& root, const PciAddress& function,
                                         const VfioUsers& users);

/// A process that has a function's VFIO group or device open.
struct VfioHolder {
  std::string process;                 ///< its PID
  std::vector<std::string> arguments;  ///< its command line, at most 64 KiB
};

/// Only includes processes that this user may inspect: for root, all processes in this PID
/// namespace and its descendants. Empty on a captured tree.
std::vector<VfioHolder> vfioHolders(const Root& root, const PciAddress& function);

}  // namespace vfpass::host
