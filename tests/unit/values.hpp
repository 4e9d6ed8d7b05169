#pragma once

#include <cstdint>

#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass {

inline constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30U;

/// The address, which a test writes and so is valid.
inline PciAddress at(const char* address) { return *parsePciAddress(address); }

/// Each attribute of a VF with another value than its default.
inline VfSettings everySetting() {
  VfSettings every;
  every.mac = MacAddress{{0x52, 0x54, 0, 1, 2, 3}};
  every.vlan = Vlan{100, 5, VlanProtocol::dot1ad};
  every.rate = Rate{10, 1000};
  every.spoofCheck = false;
  every.linkState = LinkState::enable;
  every.trust = true;
  every.nodeGuid = Guid{0x1122334455667788U};
  every.portGuid = Guid{0x1122334455667789U};
  every.msixVectors = 17;
  return every;
}

/// Each attribute of a VF with another value than in everySetting().
inline VfSettings everyOtherSetting() {
  VfSettings every;
  every.mac = MacAddress{{0x52, 0x54, 0, 1, 2, 4}};
  every.vlan = Vlan{};
  every.rate = Rate{};
  every.spoofCheck = true;
  every.linkState = LinkState::automatic;
  every.trust = false;
  every.nodeGuid = Guid{1};
  every.portGuid = Guid{2};
  every.msixVectors = 12;
  return every;
}

}  // namespace vfpass
