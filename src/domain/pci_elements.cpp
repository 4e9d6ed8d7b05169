#include "pci_elements.hpp"

#include <array>
#include <cstdio>
#include <string_view>

#include "document.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {
namespace {

// libvirt reads these with base 0, where a leading zero means octal; it writes hexadecimal.
std::optional<std::uint64_t> readNumber(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    return parseNumber(text.substr(2), 16);
  }
  return parseNumber(text, text.starts_with('0') ? 8 : 10);
}

bool readPart(pugi::xml_node address, const char* name, std::uint64_t limit, auto& part) {
  const auto attribute = address.attribute(name);
  const auto value = attribute ? readNumber(attribute.value()) : 0;
  if (!value || *value > limit) {
    return false;
  }
  part = static_cast<std::remove_reference_t<decltype(part)>>(*value);
  return true;
}

void writePart(pugi::xml_node address, const char* name, int width, unsigned value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%0*x", width, value);
  setAttribute(address, name, text.data());
}

}  // namespace

std::optional<PciAddress> readPciAddress(pugi::xml_node address) {
  PciAddress value;
  const bool complete = address && readPart(address, "domain", 0xffffffffU, value.domain) &&
                        readPart(address, "bus", 0xff, value.bus) &&
                        readPart(address, "slot", 0x1f, value.slot) &&
                        readPart(address, "function", 7, value.function);
  return complete ? std::optional(value) : std::nullopt;
}

void writePciAddress(pugi::xml_node address, const PciAddress& value) {
  writePart(address, "domain", 4, value.domain);
  writePart(address, "bus", 2, value.bus);
  writePart(address, "slot", 2, value.slot);
  writePart(address, "function", 1, value.function);
}

std::optional<PciAddress> guestAddressOf(pugi::xml_node device) {
  const auto address = device.child("address");
  return attributeText(address, "type") == "pci" ? readPciAddress(address) : std::nullopt;
}

void setAttribute(pugi::xml_node node, const char* name, const char* value) {
  auto attribute = node.attribute(name);
  (attribute ? attribute : node.append_attribute(name)).set_value(value);
}

std::optional<unsigned> smallNumber(std::string_view text) {
  const auto value = parseNumber(text);
  return value && *value <= 0xffU ? std::optional(static_cast<unsigned>(*value)) : std::nullopt;
}

PciController readController(pugi::xml_node device, unsigned index) {
  const auto target = device.child("target");
  PciController controller;
  controller.index = index;
  controller.model = attributeText(device, "model");
  controller.address = guestAddressOf(device);
  controller.node = smallNumber(trim(target.child_value("node")));
  controller.busNumber = smallNumber(attributeText(target, "busNr"));
  controller.chassis = smallNumber(attributeText(target, "chassis"));
  controller.hotplug = attributeText(target, "hotplug") != "off";
  if (const auto alias = aliasOf(device); isOurAlias(alias)) {
    controller.ourAlias = alias;
  }
  return controller;
}

}  // namespace vfpass::domain
