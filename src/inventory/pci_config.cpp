#include "pci_config.hpp"

#include <array>
#include <cstdint>

namespace vfpass::inventory {
namespace {

// PCI Local Bus Specification 3.0, 6.1 and 6.7; PCI Express Base Specification, 7.5.3.
constexpr std::size_t statusRegister = 0x06;
constexpr unsigned hasCapabilities = 1U << 4U;
constexpr std::size_t capabilityPointer = 0x34;
constexpr unsigned pciExpress = 0x10;
constexpr std::size_t linkCapabilities = 0x0c;
constexpr std::size_t linkStatus = 0x12;
constexpr int capabilityLimit = 48;  // of four bytes each in the 192 bytes after the header

std::optional<unsigned> wordAt(std::string_view config, std::size_t offset) {
  if (offset + 2 > config.size()) {
    return std::nullopt;
  }
  return static_cast<unsigned char>(config[offset]) |
         static_cast<unsigned>(static_cast<unsigned char>(config[offset + 1])) << 8U;
}

// In both link registers, bits 3:0 encode the speed and bits 9:4 the number of lanes.
PcieLink linkIn(unsigned bits) {
  constexpr std::array<unsigned, 7> speeds{0, 2500, 5000, 8000, 16000, 32000, 64000};
  const unsigned code = bits & 0xfU;
  return {code < speeds.size() ? speeds[code] : 0, bits >> 4U & 0x3fU};
}

std::optional<std::size_t> findCapability(std::string_view config, unsigned wanted) {
  if ((wordAt(config, statusRegister).value_or(0) & hasCapabilities) == 0) {
    return std::nullopt;
  }
  // The two lowest bits of every pointer are reserved.
  std::size_t at = wordAt(config, capabilityPointer).value_or(0) & 0xfcU;
  for (int step = 0; step < capabilityLimit && at != 0; ++step) {
    const auto header = wordAt(config, at);
    if (!header) {
      return std::nullopt;
    }
    if ((*header & 0xffU) == wanted) {
      return at;
    }
    at = *header >> 8U & 0xfcU;
  }
  return std::nullopt;
}

}  // namespace

std::optional<PcieCapability> findPcieCapability(std::string_view config) {
  const auto at = findCapability(config, pciExpress);
  const auto flags = at ? wordAt(config, *at + 2) : std::nullopt;
  const auto best = at ? wordAt(config, *at + linkCapabilities) : std::nullopt;
  const auto now = at ? wordAt(config, *at + linkStatus) : std::nullopt;
  if (!flags || !best || !now) {
    return std::nullopt;
  }
  return PcieCapability{static_cast<PortType>(*flags >> 4U & 0xfU), linkIn(*now), linkIn(*best)};
}

}  // namespace vfpass::inventory
