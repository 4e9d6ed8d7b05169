#include "controller_element.hpp"

#include "document.hpp"
#include "pci_attributes.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::domain {

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
