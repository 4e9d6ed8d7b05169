#pragma once

#include <cstdint>

#include "context.hpp"

namespace vfpass::settings {

/// The default 64-bit MMIO window of QEMU and firmware (q35-pcihost.pci-hole64-size; OVMF's
/// PcdPciMmio64Size).
inline constexpr std::uint64_t defaultWindow = 32 * gibibyte;

/// The default physical address bits of a guest CPU (QEMU's phys-bits).
inline constexpr unsigned defaultBits = 40;

/// The physical address space that the devices need in the guest.
struct AddressNeeds {
  std::uint64_t bars = 0;    ///< sum of the 64-bit BARs
  std::uint64_t window = 0;  ///< a power of two that fits them behind their ports
  std::uint64_t end = 0;     ///< of the window, which lies above RAM
  unsigned bits = 0;         ///< physical address bits for all of it
};

AddressNeeds addressNeeds(const Input& input);

/// The window that OVMF chooses in a guest with that many address bits.
std::uint64_t firmwareWindow(const Input& input, unsigned bits);

}  // namespace vfpass::settings
