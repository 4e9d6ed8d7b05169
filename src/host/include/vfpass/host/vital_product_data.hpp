#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "vfpass/host/root.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::host {

/// Reads up to `length` bytes at `offset`; fewer at the end or after an error.
using ByteReader = std::function<std::string(std::size_t offset, std::size_t length)>;

/// The serial number (keyword SN) in a PCI function's vital product data; empty when there is none
/// or the data is malformed. Reads as little as possible, because the kernel fetches four bytes at
/// a time through registers.
std::string findSerial(const ByteReader& read);

/// Reads the serial number from the function's `vpd` file.
/// The kernel reads four bytes at a time, each a request to the card's firmware: on a card this
/// takes up to tenths of a second, and longer if the card hangs. On the running system a guarded
/// process reads, so that the caller waits no longer than deadlines::serial.
std::string readSerial(const Root& root, const PciAddress& function);

/// Whether serial numbers are read (readSerial).
enum class Serials { read, skip };

/// The parts of a `vpd` file that findSerial() needs, read by a guarded process, at their offsets;
/// empty if that takes longer than `deadline`.
std::string readVpdGuarded(int file, std::chrono::milliseconds deadline);

}  // namespace vfpass::host
