#pragma once

#include <cstdint>
#include <string>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Location of a function, independent of netdev names: `pci0000:00/0000:00:01.0/0000:01:00.0`.
/// Empty when there is no function at that address.
std::string devicePath(const Root& root, const PciAddress& address);

/// A 16-bit identifier from sysfs; `path` is the path of the file `vendor` or `device`.
std::uint16_t readIdentifier(const Root& root, const std::string& path);

/// NUMA node of the function in directory `path`; -1 where the firmware does not specify it.
int readNumaNode(const Root& root, const std::string& path);

}  // namespace vfpass::host
