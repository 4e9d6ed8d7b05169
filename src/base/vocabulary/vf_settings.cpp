#include "vfpass/vf_settings.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<Attribute, 8> attributeNames{{{Attribute::mac, "mac"},
                                              {Attribute::vlan, "vlan"},
                                              {Attribute::rate, "rate"},
                                              {Attribute::spoofCheck, "spoof-check"},
                                              {Attribute::linkState, "link-state"},
                                              {Attribute::trust, "trust"},
                                              {Attribute::nodeGuid, "node-guid"},
                                              {Attribute::portGuid, "port-guid"}}};
constexpr Names<LinkState, 3> linkStateNames{{{LinkState::automatic, "auto"},
                                              {LinkState::enable, "enable"},
                                              {LinkState::disable, "disable"}}};
constexpr Names<VlanProtocol, 2> protocolNames{
    {{VlanProtocol::dot1q, "802.1Q"}, {VlanProtocol::dot1ad, "802.1ad"}}};

// Calls `visit(attribute, member of one, corresponding member of other)` for every attribute.
template <typename One, typename Other, typename Visit>
void forEachAttribute(One& one, Other& other, Visit visit) {
  visit(Attribute::mac, one.mac, other.mac);
  visit(Attribute::vlan, one.vlan, other.vlan);
  visit(Attribute::rate, one.rate, other.rate);
  visit(Attribute::spoofCheck, one.spoofCheck, other.spoofCheck);
  visit(Attribute::linkState, one.linkState, other.linkState);
  visit(Attribute::trust, one.trust, other.trust);
  visit(Attribute::nodeGuid, one.nodeGuid, other.nodeGuid);
  visit(Attribute::portGuid, one.portGuid, other.portGuid);
}

std::string text(const MacAddress& mac) { return toString(mac); }
std::string text(const Guid& guid) { return toString(guid); }
std::string text(bool value) { return value ? "on" : "off"; }
std::string text(LinkState state) { return std::string(toString(state)); }
std::string text(const Rate& rate) {
  return std::to_string(rate.min) + ".." +
         (rate.max == 0 ? "unlimited" : std::to_string(rate.max)) + " Mbit/s";
}
std::string text(const Vlan& vlan) {
  if (vlan.id == 0 && vlan.qos == 0) {
    return "none";
  }
  return std::to_string(vlan.id) + " qos " + std::to_string(vlan.qos) + " " +
         std::string(toString(vlan.protocol));
}

}  // namespace

std::string_view toString(Attribute attribute) { return nameOf(attributeNames, attribute); }
std::optional<Attribute> parseAttribute(std::string_view name) {
  return valueOf(attributeNames, name);
}
std::string_view toString(LinkState state) { return nameOf(linkStateNames, state); }
std::optional<LinkState> parseLinkState(std::string_view name) {
  return valueOf(linkStateNames, name);
}
std::string_view toString(VlanProtocol protocol) { return nameOf(protocolNames, protocol); }
std::optional<VlanProtocol> parseVlanProtocol(std::string_view name) {
  return valueOf(protocolNames, name);
}

std::vector<Attribute> differingAttributes(const VfSettings& wanted, const VfSettings& seen) {
  std::vector<Attribute> different;
  forEachAttribute(wanted, seen, [&](Attribute attribute, const auto& want, const auto& have) {
    if (want && want != have) {
      different.push_back(attribute);
    }
  });
  return different;
}

std::string describe(const VfSettings& settings, Attribute attribute) {
  std::string description = "not observable";
  forEachAttribute(settings, settings, [&](Attribute each, const auto& value, const auto&) {
    if (each == attribute && value) {
      description = text(*value);
    }
  });
  return description;
}

VfSettings only(const VfSettings& settings, const std::vector<Attribute>& attributes) {
  VfSettings reduced;
  forEachAttribute(settings, reduced, [&](Attribute each, const auto& value, auto& target) {
    for (const Attribute attribute : attributes) {
      if (attribute == each) {
        target = value;
      }
    }
  });
  return reduced;
}

VfSettings neutralSettings(bool infiniband) {
  VfSettings neutral;
  neutral.linkState = LinkState::automatic;
  if (infiniband) {
    neutral.nodeGuid = Guid{~std::uint64_t{0}};
    neutral.portGuid = Guid{~std::uint64_t{0}};
    return neutral;
  }
  neutral.mac = MacAddress{};
  neutral.vlan = Vlan{};
  neutral.rate = Rate{};
  neutral.spoofCheck = true;
  neutral.trust = false;
  return neutral;
}

}  // namespace vfpass
