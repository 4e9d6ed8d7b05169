#include "our_elements.hpp"

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

// The namespace of the element's prefix, declared on the element or an ancestor.
std::string_view namespaceOf(pugi::xml_node node) {
  const std::string_view name = node.name();
  const auto colon = name.find(':');
  const auto declaration = colon == std::string_view::npos
                               ? std::string("xmlns")
                               : "xmlns:" + std::string(name.substr(0, colon));
  for (; node; node = node.parent()) {
    if (const auto attribute = node.attribute(declaration.c_str())) {
      return attribute.value();
    }
  }
  return {};
}

}  // namespace

bool isOurElement(pugi::xml_node node, std::string_view localName) {
  const std::string_view name = node.name();
  return name.substr(name.find(':') + 1) == localName && namespaceOf(node) == metadataNamespace;
}

std::vector<pugi::xml_node> ourMetadata(const Document& document) {
  std::vector<pugi::xml_node> found;
  for (const auto node : document.domain().child("metadata")) {
    if (isOurElement(node, "domain")) {
      found.push_back(node);
    }
  }
  return found;
}

std::vector<pugi::xml_node> ourDevices(const Document& document) {
  std::vector<pugi::xml_node> found;
  for (const auto device : document.devices()) {
    if (isOurAlias(aliasOf(device))) {
      found.push_back(device);
    }
  }
  return found;
}

bool isPciController(pugi::xml_node device) {
  return std::string_view(device.name()) == "controller" && attributeText(device, "type") == "pci";
}

std::optional<unsigned> controllerIndex(pugi::xml_node controller) {
  const auto value = parseNumber(attributeText(controller, "index"));
  return value && *value <= 0xffU ? std::optional(static_cast<unsigned>(*value)) : std::nullopt;
}

std::optional<pugi::xml_node> hostAddressElement(pugi::xml_node device) {
  const std::string_view name = device.name();
  const auto type = attributeText(device, "type");
  const auto address = device.child("source").child("address");
  // An interface can also be a USB adapter, which has no PCI function.
  const bool usb = attributeText(address, "type") == "usb";
  const bool claims = (name == "hostdev" && type == "pci") ||
                      (name == "interface" && type == "hostdev" && !usb) ||
                      (name == "disk" && type == "nvme");
  return claims ? std::optional(address) : std::nullopt;
}

}  // namespace vfpass::domain
