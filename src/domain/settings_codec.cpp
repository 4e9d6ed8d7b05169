#include "settings_codec.hpp"

#include "attribute_codec.hpp"

namespace vfpass::domain {
namespace {

// One overload of write() and read() for each type of value; `name` is the attribute's row name.

template <typename Value>
void write(pugi::xml_node node, const std::string& name, const Value& value) {
  writeText(node, name.c_str(), std::string(toString(value)));
}

void write(pugi::xml_node node, const std::string& name, bool value) {
  writeFlag(node, name.c_str(), value);
}

void write(pugi::xml_node node, const std::string& name, const Vlan& vlan) {
  writeText(node, (name + "-id").c_str(), std::to_string(vlan.id));
  writeText(node, (name + "-qos").c_str(), std::to_string(vlan.qos));
  writeText(node, (name + "-protocol").c_str(), std::string(toString(vlan.protocol)));
}

void write(pugi::xml_node node, const std::string& name, const Rate& rate) {
  writeText(node, (name + "-min").c_str(), std::to_string(rate.min));
  writeText(node, (name + "-max").c_str(), std::to_string(rate.max));
}

void read(pugi::xml_node node, const std::string& name, std::optional<MacAddress>& value) {
  value = readOptional(node, name.c_str(), parseMacAddress);
}

void read(pugi::xml_node node, const std::string& name, std::optional<Guid>& value) {
  value = readOptional(node, name.c_str(), parseGuid);
}

void read(pugi::xml_node node, const std::string& name, std::optional<LinkState>& value) {
  value = readOptional(node, name.c_str(), parseLinkState);
}

void read(pugi::xml_node node, const std::string& name, std::optional<bool>& value) {
  if (node.attribute(name.c_str())) {
    value = readFlag(node, name.c_str());
  }
}

void read(pugi::xml_node node, const std::string& name, std::optional<Vlan>& value) {
  if (node.attribute((name + "-id").c_str())) {
    value = Vlan{readNumber<std::uint16_t>(node, (name + "-id").c_str(), 4094),
                 readNumber<std::uint8_t>(node, (name + "-qos").c_str(), 7),
                 readValue(node, (name + "-protocol").c_str(), parseVlanProtocol)};
  }
}

void read(pugi::xml_node node, const std::string& name, std::optional<Rate>& value) {
  if (node.attribute((name + "-min").c_str()) || node.attribute((name + "-max").c_str())) {
    value = Rate{readNumber<std::uint32_t>(node, (name + "-min").c_str()),
                 readNumber<std::uint32_t>(node, (name + "-max").c_str())};
  }
}

}  // namespace

void writeSettings(pugi::xml_node node, const VfSettings& settings) {
  forEachAttribute([&](const auto& row) {
    if (const auto& value = settings.*row.member) {
      write(node, row.name, *value);
    }
  });
}

VfSettings readSettings(pugi::xml_node node) {
  VfSettings settings;
  forEachAttribute([&](const auto& row) { read(node, row.name, settings.*row.member); });
  return settings;
}

}  // namespace vfpass::domain
