#include "our_elements.hpp"

#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::domain {
namespace {

std::string_view prefixOf(pugi::xml_node node) {
  const std::string_view name = node.name();
  const auto colon = name.find(':');
  return colon == std::string_view::npos ? std::string_view() : name.substr(0, colon);
}

std::string_view localNameOf(pugi::xml_node node) {
  const std::string_view name = node.name();
  return name.substr(name.find(':') + 1);
}

pugi::xml_attribute declarationOf(pugi::xml_node node, std::string_view prefix) {
  const std::string name = prefix.empty() ? "xmlns" : "xmlns:" + std::string(prefix);
  return node.attribute(name.c_str());
}

// The prefixes of our namespace inside <metadata>, unless an element there declares them again.
std::set<std::string, std::less<>> prefixesInMetadata(const Document& document) {
  std::set<std::string, std::less<>> prefixes;
  for (const auto node : {document.domain(), document.domain().child("metadata")}) {
    for (const auto attribute : node.attributes()) {
      const std::string_view name = attribute.name();
      if (name != "xmlns" && !name.starts_with("xmlns:")) {
        continue;
      }
      const std::string prefix(name == "xmlns" ? "" : name.substr(6));
      if (attribute.value() == metadataNamespace) {
        prefixes.insert(prefix);
      } else {
        prefixes.erase(prefix);
      }
    }
  }
  return prefixes;
}

}  // namespace

bool isOurChild(pugi::xml_node node, std::string_view localName) {
  if (localNameOf(node) != localName) {
    return false;
  }
  const auto declared = declarationOf(node, prefixOf(node));
  return declared ? declared.value() == metadataNamespace
                  : prefixOf(node) == prefixOf(node.parent());
}

std::vector<pugi::xml_node> ourMetadata(const Document& document) {
  const auto inherited = prefixesInMetadata(document);
  std::vector<pugi::xml_node> found;
  for (const auto node : document.domain().child("metadata")) {
    const auto declared = declarationOf(node, prefixOf(node));
    const bool ours =
        declared ? declared.value() == metadataNamespace : inherited.contains(prefixOf(node));
    if (ours && localNameOf(node) == "domain") {
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
