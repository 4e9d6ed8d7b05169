#pragma once

#include <cstdint>

#include "vfpass/pci_address.hpp"

namespace vfpass {

inline constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

/// The address, which a test writes and so is valid.
inline PciAddress at(const char* address) { return *parsePciAddress(address); }

}  // namespace vfpass
