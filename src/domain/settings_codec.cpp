#include "settings_codec.hpp"

#include "attribute_codec.hpp"

namespace vfpass::domain {

void writeSettings(pugi::xml_node node, const VfSettings& settings) {
  const auto write = [node](const char* name, const auto& value) {
    if (value) {
      writeText(node, name, std::string(toString(*value)));
    }
  };
  write("mac", settings.mac);
  if (settings.vlan) {
    writeText(node, "vlan-id", std::to_string(settings.vlan->id));
    writeText(node, "vlan-qos", std::to_string(settings.vlan->qos));
    writeText(node, "vlan-protocol", std::string(toString(settings.vlan->protocol)));
  }
  if (settings.rate) {
    writeText(node, "rate-min", std::to_string(settings.rate->min));
    writeText(node, "rate-max", std::to_string(settings.rate->max));
  }
  if (settings.spoofCheck) {
    writeFlag(node, "spoof-check", *settings.spoofCheck);
  }
  write("link-state", settings.linkState);
  if (settings.trust) {
    writeFlag(node, "trust", *settings.trust);
  }
  write("node-guid", settings.nodeGuid);
  write("port-guid", settings.portGuid);
}

VfSettings readSettings(pugi::xml_node node) {
  VfSettings settings;
  settings.mac = readOptional(node, "mac", parseMacAddress);
  if (node.attribute("vlan-id")) {
    settings.vlan = Vlan{readNumber<std::uint16_t>(node, "vlan-id", 4094),
                         readNumber<std::uint8_t>(node, "vlan-qos", 7),
                         readValue(node, "vlan-protocol", parseVlanProtocol)};
  }
  if (node.attribute("rate-min") || node.attribute("rate-max")) {
    settings.rate = Rate{readNumber<std::uint32_t>(node, "rate-min"),
                         readNumber<std::uint32_t>(node, "rate-max")};
  }
  if (node.attribute("spoof-check")) {
    settings.spoofCheck = readFlag(node, "spoof-check");
  }
  settings.linkState = readOptional(node, "link-state", parseLinkState);
  if (node.attribute("trust")) {
    settings.trust = readFlag(node, "trust");
  }
  settings.nodeGuid = readOptional(node, "node-guid", parseGuid);
  settings.portGuid = readOptional(node, "port-guid", parseGuid);
  return settings;
}

}  // namespace vfpass::domain
