#pragma once

#include <cstdint>

#include "context.hpp"

namespace vfpass::settings {

/// The 64-bit MMIO window of firmware and QEMU where nobody says otherwise
/// (q35-pcihost.pci-hole64-size; OVMF's PcdPciMmio64Size).
inline constexpr std::uint64_t defaultWindow = 32 * gibibyte;

/// Physical address bits of a guest CPU where the domain does not say (QEMU's phys-bits).
inline constexpr unsigned defaultBits = 40;

/// What the devices ask of the guest's physical address space.
struct AddressNeeds {
  std::uint64_t bars = 0;    ///< sum of the 64-bit BARs
  std::uint64_t window = 0;  ///< a power of two that holds them behind their ports
  std::uint64_t end = 0;     ///< RAM below, the window above it
  unsigned bits = 0;         ///< so many address all of that
};

AddressNeeds addressNeeds(const Input& input);

/// The window that OVMF makes by itself in a guest with so many address bits.
std::uint64_t firmwareWindow(const Input& input, unsigned bits);

}  // namespace vfpass::settings
