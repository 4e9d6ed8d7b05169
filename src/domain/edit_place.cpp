#include "edit_place.hpp"

#include "bad_xml.hpp"
#include "our_elements.hpp"

namespace vfpass::domain {
namespace {

constexpr const char* qemuNamespace = "http://libvirt.org/schemas/domain/qemu/1.0";

bool isQemuElement(EditPlace place) {
  return place == EditPlace::qemuCommandline || place == EditPlace::qemuOverride;
}

}  // namespace

pugi::xml_node containerAt(const Document& document, EditPlace place) {
  if (place != EditPlace::pcieRoot) {
    return document.domain().child(std::string(toString(place)).c_str());
  }
  for (const auto device : document.devices()) {
    if (isPciController(device) && attributeText(device, "model") == "pcie-root") {
      return device;
    }
  }
  return {};
}

pugi::xml_node neighbourOf(const Document& document, EditPlace place) {
  if (place == EditPlace::cpu || place == EditPlace::pcieRoot) {
    throw badXml("no <" + std::string(place == EditPlace::cpu ? "cpu" : "controller") +
                 "> element for a domain setting");
  }
  if (isQemuElement(place)) {
    return lastElement(document.domain());
  }
  auto before = document.devices().previous_sibling();
  while (before && before.type() != pugi::node_element) {
    before = before.previous_sibling();
  }
  return before ? before : document.domain().child("name");
}

std::string startTagOf(const Document& document, EditPlace place) {
  const std::string name(toString(place));
  const bool declares = isQemuElement(place) && !document.domain().attribute("xmlns:qemu");
  return "<" + name + (declares ? std::string(" xmlns:qemu='") + qemuNamespace + "'" : "") + ">";
}

}  // namespace vfpass::domain
