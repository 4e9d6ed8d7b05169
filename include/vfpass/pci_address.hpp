#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vfpass {

/// Address of one PCI function. Domains can be wider than 16 bits (Intel VMD, Hyper-V).
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t slot = 0;      ///< device number, 0 to 31
  std::uint8_t function = 0;  ///< 0 to 7

  auto operator<=>(const PciAddress&) const = default;
};

/// Reads `dddd:bb:dd.f` or `bb:dd.f` (domain 0), hexadecimal; nullopt for anything else.
std::optional<PciAddress> parsePciAddress(std::string_view text);

/// The kernel's spelling: `0000:3b:00.1`, lower case, the domain at least four digits wide.
std::string toString(const PciAddress& address);

// PCI vendor IDs (pci.ids).

inline constexpr std::uint16_t mellanox = 0x15b3;  ///< of ConnectX and BlueField NICs
inline constexpr std::uint16_t nvidia = 0x10de;
inline constexpr std::uint16_t intel = 0x8086;
inline constexpr std::uint16_t amdGraphics = 0x1002;
inline constexpr std::uint16_t amdProcessor = 0x1022;

}  // namespace vfpass
