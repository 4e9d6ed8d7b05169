#include "vfpass/base/pci_files.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

// PCI Local Bus Specification 3.0, 6.1 and 6.7; PCI Express Base Specification 5.0, 7.6.3.
constexpr std::size_t statusRegister = 0x06;
constexpr unsigned hasCapabilities = 1U << 4U;
constexpr std::size_t capabilityPointer = 0x34;
constexpr std::size_t extendedSpace = 0x100;
// A list may be circular. As many capabilities as fit: of four bytes each in the 192 bytes after
// the header, and of eight in the extended space.
constexpr int capabilityLimit = 48;
constexpr int extendedLimit = (4096 - 256) / 8;

}  // namespace

std::optional<std::uint16_t> configWord(std::string_view config, std::size_t offset) {
  if (offset + 2 > config.size()) {
    return std::nullopt;
  }
  const auto low = static_cast<unsigned char>(config[offset]);
  const auto high = static_cast<unsigned char>(config[offset + 1]);
  return static_cast<std::uint16_t>(low | high << 8U);
}

// A header has 8 bits of ID and 8 of the next offset, whose two lowest bits are reserved.
std::optional<std::size_t> findCapability(std::string_view config, std::uint8_t id) {
  if ((configWord(config, statusRegister).value_or(0) & hasCapabilities) == 0) {
    return std::nullopt;
  }
  std::size_t at = configWord(config, capabilityPointer).value_or(0) & 0xfcU;
  for (int step = 0; step < capabilityLimit && at != 0; ++step) {
    const auto header = configWord(config, at);
    if (!header || (*header & 0xffU) == id) {
      return header ? std::optional(at) : std::nullopt;
    }
    at = *header >> 8U & 0xfcU;
  }
  return std::nullopt;
}

// A header has 16 bits of ID, 4 of version and 12 of the next offset.
std::optional<std::size_t> findExtendedCapability(std::string_view config, std::uint16_t id) {
  std::size_t at = extendedSpace;
  for (int step = 0; step < extendedLimit && at >= extendedSpace; ++step) {
    const auto found = configWord(config, at);
    const auto next = configWord(config, at + 2);
    if (!next || found == id) {
      return next ? std::optional(at) : std::nullopt;
    }
    at = *next >> 4U & 0xffcU;
  }
  return std::nullopt;
}

// PCI Express Base Specification 5.0, 7.5.3: bits 2:0 of the device capabilities, bits 7:5 and
// 14:12 of the device control register are a power of two, from 128 bytes on; bit 4 of it enables
// relaxed ordering, and is set after a reset.
std::optional<PciePackets> findPciePackets(std::string_view config) {
  constexpr unsigned largestCode = 5;
  const auto at = findCapability(config, pciExpress);
  const auto capable = at ? configWord(config, *at + 4) : std::nullopt;
  const auto control = at ? configWord(config, *at + 8) : std::nullopt;
  if (!capable || !control) {
    return std::nullopt;
  }
  const unsigned supported = *capable & 7U;
  const unsigned payload = *control >> 5U & 7U;
  const unsigned readRequest = *control >> 12U & 7U;
  if (std::max({supported, payload, readRequest}) > largestCode) {
    return std::nullopt;
  }
  constexpr unsigned relaxedOrdering = 0x10;
  return PciePackets{128U << payload, 128U << supported, 128U << readRequest,
                     (*control & relaxedOrdering) != 0};
}

// PCI Express Base Specification 5.0, 7.9.3: the header, then 64 bits, of which the highest byte
// comes first in text.
std::string findSerialNumber(std::string_view config) {
  constexpr std::size_t header = 4;
  constexpr std::size_t length = 8;
  constexpr std::string_view digits = "0123456789abcdef";
  const auto at = findExtendedCapability(config, deviceSerialNumber);
  if (!at || *at + header + length > config.size()) {
    return {};
  }
  const std::string_view number = config.substr(*at + header, length);
  if (number.find_first_not_of('\0') == std::string_view::npos ||
      number.find_first_not_of('\xff') == std::string_view::npos) {
    return {};
  }
  std::string text;
  for (std::size_t byte = length; byte-- > 0;) {
    const auto value = static_cast<unsigned char>(number[byte]);
    text += {digits[value >> 4U], digits[value & 0xfU]};
    text += byte > 0 ? "-" : "";
  }
  return text;
}

bool hasExtendedSpace(std::string_view config) { return config.size() >= extendedSpace + 4; }

namespace {

PciResource resourceIn(std::string_view line) {
  std::array<std::uint64_t, 3> numbers{};
  for (std::uint64_t& number : numbers) {
    line = trim(line);
    const auto word = line.substr(0, line.find(' '));
    const auto value = word.starts_with("0x") ? parseNumber(word.substr(2), 16) : std::nullopt;
    if (!value) {
      return {};
    }
    number = *value;
    line.remove_prefix(word.size());
  }
  const auto [first, last, flags] = numbers;
  return {first, last > first ? last - first + 1 : 0, flags};
}

}  // namespace

std::vector<PciResource> readPciResources(std::string_view text) {
  std::vector<PciResource> resources;
  std::ranges::transform(splitLines(text), std::back_inserter(resources), resourceIn);
  return resources;
}

bool isDriverName(std::string_view name) {
  constexpr std::size_t longest = 63;  // a module name has at most 55 characters (MODULE_NAME_LEN)
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyz"
      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  // modprobe would parse a name with a leading `-` as an option if a caller omits `--`.
  return !name.empty() && name.size() <= longest && !name.starts_with('-') &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

// Driver names and module names: KBUILD_MODNAME, which the variants use, has underscores.
bool isVfioDriver(std::string_view driver) {
  constexpr std::array<std::string_view, 5> drivers{"vfio-pci", "mlx5_vfio_pci", "mlx5-vfio-pci",
                                                    "nvgrace_gpu_vfio_pci", "nvgrace-gpu-vfio-pci"};
  return std::ranges::find(drivers, driver) != drivers.end();
}

}  // namespace vfpass
