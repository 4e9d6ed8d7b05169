#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Reads up to `length` bytes at `offset`; fewer at the end or at an error.
using ByteReader = std::function<std::string(std::size_t offset, std::size_t length)>;

/// The serial number (keyword SN) in a PCI function's vital product data; empty: none, or the data
/// is damaged. Reads only what it needs: the kernel fetches each four bytes through registers.
std::string findSerial(const ByteReader& read);

/// The same from the function's `vpd` file.
std::string readSerial(const Root& root, const PciAddress& function);

}  // namespace vfpass::host
