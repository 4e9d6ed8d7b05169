#pragma once

#include <cstdint>

namespace vfpass {

// PCI vendor IDs (pci.ids).

inline constexpr std::uint16_t mellanox = 0x15b3;  ///< of ConnectX and BlueField NICs
inline constexpr std::uint16_t nvidia = 0x10de;
inline constexpr std::uint16_t intel = 0x8086;
inline constexpr std::uint16_t amdGraphics = 0x1002;
inline constexpr std::uint16_t amdProcessor = 0x1022;

}  // namespace vfpass
