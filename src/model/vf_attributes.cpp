#include "vfpass/vf_attributes.hpp"

#include <algorithm>
#include <concepts>

namespace vfpass {
namespace {

std::string text(const MacAddress& mac) { return toString(mac); }
std::string text(const Guid& guid) { return toString(guid); }
std::string text(bool value) { return value ? "on" : "off"; }
template <std::unsigned_integral Number>
std::string text(Number number) {
  return std::to_string(number);
}
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

std::string_view toString(Attribute attribute) {
  std::string_view name = "?";
  forEachAttribute([&](const auto& row) { name = row.attribute == attribute ? row.name : name; });
  return name;
}

std::optional<Attribute> parseAttribute(std::string_view name) {
  std::optional<Attribute> found;
  forEachAttribute([&](const auto& row) { found = row.name == name ? row.attribute : found; });
  return found;
}

bool existsOn(Attribute attribute, bool infiniband) {
  bool exists = false;
  forEachAttribute([&](const auto& row) {
    exists = exists || (row.attribute == attribute && (row.kept || row.neutral(infiniband)));
  });
  return exists;
}

std::vector<Attribute> changing(const VfSettings& settings, Change change) {
  std::vector<Attribute> found;
  forEachAttribute([&](const auto& row) {
    if (row.change == change && settings.*row.member) {
      found.push_back(row.attribute);
    }
  });
  return found;
}

VfSettings keptSettings(const VfSettings& settings) {
  VfSettings found;
  forEachAttribute([&](const auto& row) {
    if (row.kept) {
      found.*row.member = settings.*row.member;
    }
  });
  return found;
}

std::vector<Attribute> differingAttributes(const VfSettings& wanted, const VfSettings& seen) {
  std::vector<Attribute> different;
  forEachAttribute([&](const auto& row) {
    if (wanted.*row.member && wanted.*row.member != seen.*row.member) {
      different.push_back(row.attribute);
    }
  });
  return different;
}

std::string describe(const VfSettings& settings, Attribute attribute) {
  std::string description = "not observable";
  forEachAttribute([&](const auto& row) {
    if (row.attribute == attribute && settings.*row.member) {
      description = text(*(settings.*row.member));
    }
  });
  return description;
}

VfSettings only(const VfSettings& settings, const std::vector<Attribute>& attributes) {
  VfSettings reduced;
  forEachAttribute([&](const auto& row) {
    if (std::ranges::find(attributes, row.attribute) != attributes.end()) {
      reduced.*row.member = settings.*row.member;
    }
  });
  return reduced;
}

VfSettings without(VfSettings settings, const std::set<Attribute>& attributes) {
  forEachAttribute([&](const auto& row) {
    if (attributes.contains(row.attribute)) {
      settings.*row.member = {};
    }
  });
  return settings;
}

VfSettings firstOf(VfSettings first, const VfSettings& second) {
  forEachAttribute([&](const auto& row) {
    if (!(first.*row.member)) {
      first.*row.member = second.*row.member;
    }
  });
  return first;
}

VfSettings neutralSettings(bool infiniband) {
  VfSettings neutral;
  forEachAttribute([&](const auto& row) { neutral.*row.member = row.neutral(infiniband); });
  return neutral;
}

}  // namespace vfpass
