#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"

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
/// `msixVectors` comes last: a file in sysfs has it.
enum class Attribute {
  mac,
  vlan,
  rate,
  spoofCheck,
  linkState,
  trust,
  nodeGuid,
  portGuid,
  msixVectors
};

/// Name in the mapping: mac, vlan, rate, spoof-check, link-state, trust, node-guid, port-guid,
/// msix-vectors.
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
  /// Interrupt vectors (MSI-X) of the VF: the size of the table in its configuration space.
  std::optional<std::uint16_t> msixVectors;

  auto operator<=>(const VfSettings&) const = default;
};

/// When a change of an attribute takes effect.
enum class Change {
  immediate,  ///< at once, for the VF's frames
  probe,      ///< the VF's driver reads the value when it probes
  unbound     ///< the same, and the kernel refuses a change while any driver is bound to the VF
};

/// One attribute of a VF. Everything that treats all attributes alike is driven by these rows:
/// reading YAML, comparing, merging, steps of a plan, XML metadata, journal, JSON and messages.
/// What remains per attribute is its access to the kernel (src/host/sriov/vf_message.cpp for
/// netlink, file_ports.cpp for a file) and, for values of more than one word, their format.
template <typename Value>
struct AttributeRow {
  Attribute attribute;
  const char* name;  ///< in the mapping, in XML and in the journal; JSON output has `_` for `-`
  std::optional<Value> VfSettings::*member;
  /// Its value between two owners, for each link layer; empty: it does not exist there.
  std::optional<Value> onEthernet;
  std::optional<Value> onInfiniband;
  Change change = Change::immediate;
  /// Exists on both link layers without a neutral value: it changes only for a lease that states
  /// it, and stays as it is until that lease ends.
  bool kept = false;

  [[nodiscard]] const std::optional<Value>& neutral(bool infiniband) const {
    return infiniband ? onInfiniband : onEthernet;
  }
};

/// One row per attribute, in the order of `Attribute`. On InfiniBand, GUIDs can be neither unset
/// nor read, and all ones is what no subnet manager accepts.
inline constexpr std::tuple attributeTable{
    AttributeRow<MacAddress>{
        Attribute::mac, "mac", &VfSettings::mac, MacAddress{}, {}, Change::probe},
    AttributeRow<Vlan>{Attribute::vlan, "vlan", &VfSettings::vlan, Vlan{}, {}},
    AttributeRow<Rate>{Attribute::rate, "rate", &VfSettings::rate, Rate{}, {}},
    AttributeRow<bool>{Attribute::spoofCheck, "spoof-check", &VfSettings::spoofCheck, true, {}},
    AttributeRow<LinkState>{Attribute::linkState, "link-state", &VfSettings::linkState,
                            LinkState::automatic, LinkState::automatic},
    AttributeRow<bool>{Attribute::trust, "trust", &VfSettings::trust, false, {}},
    AttributeRow<Guid>{Attribute::nodeGuid,
                       "node-guid",
                       &VfSettings::nodeGuid,
                       {},
                       Guid{~std::uint64_t{0}},
                       Change::probe},
    AttributeRow<Guid>{Attribute::portGuid,
                       "port-guid",
                       &VfSettings::portGuid,
                       {},
                       Guid{~std::uint64_t{0}},
                       Change::probe},
    AttributeRow<std::uint16_t>{Attribute::msixVectors,
                                "msix-vectors",
                                &VfSettings::msixVectors,
                                {},
                                {},
                                Change::unbound,
                                true}};

/// Calls `visit(row)` for each row.
template <typename Visit>
constexpr void forEachAttribute(Visit visit) {
  std::apply([&visit](const auto&... row) { (visit(row), ...); }, attributeTable);
}

/// Every attribute, in the order of `Attribute`.
inline constexpr auto allAttributes =
    std::apply([](const auto&... row) { return std::array{row.attribute...}; }, attributeTable);

/// The attributes that mlx5 sets only in legacy mode. In switchdev mode it answers EOPNOTSUPP
/// (mlx5/core/esw/legacy.c, mlx5e_set_vf_link_state), except to VLAN 0, which has no effect.
inline constexpr std::array legacyOnlyAttributes{Attribute::vlan, Attribute::spoofCheck,
                                                 Attribute::linkState, Attribute::trust};

/// Whether VFs of this link layer have the attribute.
bool existsOn(Attribute attribute, bool infiniband);

/// The attributes set in `settings` whose change takes effect in this way.
std::vector<Attribute> changing(const VfSettings& settings, Change change);

/// Copy of `settings` reduced to the attributes that stay as they are between two owners
/// (AttributeRow::kept).
VfSettings keptSettings(const VfSettings& settings);

/// The attributes set in `wanted` whose value in `seen` is different or not observable.
std::vector<Attribute> differingAttributes(const VfSettings& wanted, const VfSettings& seen);

/// One attribute's value as text: `aa:bb:..`, `100 qos 3 802.1Q`, `on`, `0..1000 Mbit/s`; "not
/// observable" where it is empty.
std::string describe(const VfSettings& settings, Attribute attribute);

/// Copy of `settings` reduced to the listed attributes.
VfSettings only(const VfSettings& settings, const std::vector<Attribute>& attributes);

/// Copy of `settings` without the listed attributes.
VfSettings without(VfSettings settings, const std::set<Attribute>& attributes);

/// Each attribute from `first`, or from `second` where `first` has none.
VfSettings firstOf(VfSettings first, const VfSettings& second);

/// The settings of a VF between two owners: zero MAC, no VLAN, no rate, spoof check on, link auto,
/// trust off. On InfiniBand all-ones GUIDs, because GUIDs can be neither unset nor read there.
VfSettings neutralSettings(bool infiniband);

}  // namespace vfpass
