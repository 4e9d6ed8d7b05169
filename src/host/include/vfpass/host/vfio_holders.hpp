#pragma once

#include <string>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// A process that has a function's VFIO group or device open.
struct VfioHolder {
  std::string process;                 ///< its PID
  std::vector<std::string> arguments;  ///< its command line, at most 64 KiB
};

/// Only includes processes that this user may inspect: for root, all processes in this PID
/// namespace and its descendants. Empty on a captured tree.
std::vector<VfioHolder> vfioHolders(const Root& root, const PciAddress& function);

}  // namespace vfpass::host
