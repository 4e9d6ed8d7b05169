#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace vfpass {

/// A function's resources in their order in sysfs (include/linux/pci.h): six BARs, the ROM, and six
/// VF BARs.
inline constexpr std::size_t pciBars = 6;
inline constexpr std::size_t firstVfBar = 7;  ///< PCI_IOV_RESOURCES

/// Flags of a resource (include/linux/ioport.h).
inline constexpr std::uint64_t memoryResource = 0x200;
inline constexpr std::uint64_t prefetchableResource = 0x2000;
inline constexpr std::uint64_t wideResource = 0x100000;  ///< 64 bits
inline constexpr std::uint64_t unsetResource = 0x20000000;

/// A range of addresses. One without space has no address; many kernels then also report neither
/// size nor flags, as for one that does not exist (reset_resource() in drivers/pci/setup-bus.c).
struct PciResource {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::uint64_t flags = 0;

  auto operator<=>(const PciResource&) const = default;
};

/// The lines of a function's file `resource`: first address, last address, flags, as hexadecimal
/// numbers with `0x`. A line of another form is like one of a resource that does not exist.
std::vector<PciResource> readPciResources(std::string_view text);

}  // namespace vfpass
