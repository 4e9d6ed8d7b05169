#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "vfpass/identifiers.hpp"

namespace vfpass {

enum class VlanProtocol { dot1q, dot1ad };

/// VLAN tag that the PF's eswitch adds to a VF's frames. ID 0 means none.
struct Vlan {
  std::uint16_t id = 0;  ///< 0 to 4094
  std::uint8_t qos = 0;  ///< 802.1p priority, 0 to 7
  VlanProtocol protocol = VlanProtocol::dot1q;

  auto operator<=>(const Vlan&) const = default;
};

/// Transmit rate limits of a VF in Mbit/s; 0 means no limit.
struct Rate {
  std::uint32_t min = 0;
  std::uint32_t max = 0;

  auto operator<=>(const Rate&) const = default;
};

/// Link state of a VF: follows the PF's port, or forced. InfiniBand calls `automatic` "Follow".
enum class LinkState { automatic, enable, disable };

/// Attributes of a VF that can be set through its PF, in the order in which the kernel applies them
/// (net/core/rtnetlink.c, do_setvfinfo). The first refused attribute ends the processing of a
/// message; earlier ones remain applied.
enum class Attribute { mac, vlan, rate, spoofCheck, linkState, trust, nodeGuid, portGuid };

/// Every attribute, in the kernel's order of application.
inline constexpr std::array allAttributes = {
    Attribute::mac,       Attribute::vlan,  Attribute::rate,     Attribute::spoofCheck,
    Attribute::linkState, Attribute::trust, Attribute::nodeGuid, Attribute::portGuid};

/// Name in the mapping: mac, vlan, rate, spoof-check, link-state, trust, node-guid, port-guid.
std::string_view toString(Attribute attribute);
std::optional<Attribute> parseAttribute(std::string_view name);

std::string_view toString(LinkState state);  ///< auto, enable, disable
std::optional<LinkState> parseLinkState(std::string_view name);

std::string_view toString(VlanProtocol protocol);  ///< 802.1Q, 802.1ad
std::optional<VlanProtocol> parseVlanProtocol(std::string_view name);

/// A VF's attributes: requested, observed, or recorded. An empty member means "not requested" or
/// "not observable", never "zero".
struct VfSettings {
  std::optional<MacAddress> mac;
  std::optional<Vlan> vlan;
  std::optional<Rate> rate;
  std::optional<bool> spoofCheck;
  std::optional<LinkState> linkState;
  std::optional<bool> trust;
  std::optional<Guid> nodeGuid;
  std::optional<Guid> portGuid;

  auto operator<=>(const VfSettings&) const = default;
};

/// The attributes set in `wanted` whose value in `seen` is different or not observable.
std::vector<Attribute> differingAttributes(const VfSettings& wanted, const VfSettings& seen);

/// One attribute's value as text: `aa:bb:..`, `100 qos 3 802.1Q`, `on`, `0..1000 Mbit/s`; "not
/// observable" where it is empty.
std::string describe(const VfSettings& settings, Attribute attribute);

/// Copy of `settings` reduced to the listed attributes.
VfSettings only(const VfSettings& settings, const std::vector<Attribute>& attributes);

/// The settings of a VF between two owners: zero MAC, no VLAN, no rate, spoof check on, link auto,
/// trust off. On InfiniBand all-ones GUIDs, because GUIDs can be neither unset nor read there.
VfSettings neutralSettings(bool infiniband);

}  // namespace vfpass
