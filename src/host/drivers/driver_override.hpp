#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// `driver_override` of each function, empty where none is set; nullopt where it cannot be read:
/// the device is gone, or its lock is held for longer than `deadline` (a driver hangs in probe or
/// remove). Reading takes the device's lock (drivers/pci/pci-sysfs.c), so a guarded child reads the
/// files of all functions.
std::vector<std::optional<std::string>> readDriverOverrides(
    const Root& root, const std::vector<PciAddress>& functions, std::chrono::milliseconds deadline);

/// Whether the function has the file, which then could not be read because its lock is held. False
/// in a captured tree, where a file may be missing or unreadable for any reason.
bool hasDriverOverride(const Root& root, const PciAddress& function);

/// The driver in the text of a `driver_override` file; empty where none is set.
std::string overrideIn(std::string_view text);

}  // namespace vfpass::host
