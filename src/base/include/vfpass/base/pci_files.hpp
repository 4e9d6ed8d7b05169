#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfpass {

// What sysfs says of a PCI function: its files `config` and `resource`, and its driver.

// Configuration space. `config` is its beginning, of any length and content: the kernel returns 64
// bytes without root, conventional PCI devices have 256 and others 4096, and a VF or an emulated
// device can define what they contain.

/// Capability IDs (PCI Express Base Specification, chapter 7).
inline constexpr std::uint8_t pciExpress = 0x10;
inline constexpr std::uint8_t msix = 0x11;
inline constexpr std::uint16_t deviceSerialNumber = 0x03;
inline constexpr std::uint16_t accessControlServices = 0x0d;
inline constexpr std::uint16_t addressTranslationServices = 0x0f;
inline constexpr std::uint16_t resizableBar = 0x15;

/// 16 bits; nullopt beyond the end.
std::optional<std::uint16_t> configWord(std::string_view config, std::size_t offset);

/// Offset of a capability; nullopt if the function has none, or if the list of capabilities leaves
/// `config` before it.
std::optional<std::size_t> findCapability(std::string_view config, std::uint8_t id);

/// The same for an extended capability, whose list is in the extended space.
std::optional<std::size_t> findExtendedCapability(std::string_view config, std::uint16_t id);

/// The device serial number, as lspci writes it: `94-6d-ae-ff-ff-4f-2a-10`. Empty if there is none,
/// or if all its bits are 0 or 1: nobody has set it, or the device does not respond.
std::string findSerialNumber(std::string_view config);

/// Properties of a function's packets in its PCI Express capability, sizes in bytes.
struct PciePackets {
  unsigned payload = 0;           ///< MaxPayload, as set
  unsigned payloadSupported = 0;  ///< the largest that the function supports
  unsigned readRequest = 0;       ///< MaxReadReq, as set; reserved in a VF, which uses its PF's
  bool relaxedOrdering = true;    ///< may be requested; reserved in a VF, which uses its PF's

  auto operator<=>(const PciePackets&) const = default;
};

/// nullopt if the function has no such capability, it cannot be read, or a size is reserved.
std::optional<PciePackets> findPciePackets(std::string_view config);

/// Whether the extended space was read. Only root can read it, and not every guest's machine type
/// has one.
bool hasExtendedSpace(std::string_view config);

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

/// Whether this can be the name of a kernel driver: 1 to 63 letters, digits, `_` and `-`, not
/// beginning with `-`. The name becomes part of a sysfs path and an argument of modprobe.
bool isDriverName(std::string_view name);

/// True for vfio-pci and the supported vendor variants: those for mlx5 VFs and for Grace GPUs.
/// vfpass loads no other module for a guest's device.
bool isVfioDriver(std::string_view driver);

}  // namespace vfpass
