#pragma once

#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// A process that has a function's VFIO group or device open.
struct VfioHolder {
  std::string process;                 ///< its number
  std::vector<std::string> arguments;  ///< its command line; at most 64 KiB of it
};

/// Processes that this user may look into: as root all of this machine's, but not those of another
/// PID namespace's parent. Empty below a captured tree.
std::vector<VfioHolder> vfioHolders(const Root& root, const PciAddress& function);

}  // namespace vfpass::host
