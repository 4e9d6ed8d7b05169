#pragma once

#include <set>
#include <string>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Files below /dev/vfio that some process holds open: `12` for a group, `devices/vfio3` for a
/// device. Found in /proc, because opening a group to see whether that gives EBUSY would, for that
/// moment, make a VM that is just starting fail with EBUSY itself. Empty on a captured tree.
std::set<std::string> openVfioFiles(const Root& root);

/// Whether one of `open` belongs to this function.
bool isVfioInUse(const Root& root, const PciAddress& function, const std::set<std::string>& open);

}  // namespace vfpass::host
