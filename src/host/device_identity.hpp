#pragma once

#include <cstdint>
#include <string>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// `pci0000:00/0000:00:01.0/0000:01:00.0`: where a function sits, whatever its netdev is called
/// today. Empty when there is none at that address.
std::string devicePath(const Root& root, const PciAddress& address);

/// A 16-bit identifier of sysfs; `path` is that of `vendor` or `device`.
std::uint16_t readIdentifier(const Root& root, const std::string& path);

/// NUMA node of the function in folder `path`; -1 where the firmware does not say.
int readNumaNode(const Root& root, const std::string& path);

}  // namespace vfpass::host
