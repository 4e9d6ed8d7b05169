#include "without_ours.hpp"

#include <algorithm>
#include <set>

#include "domain_edits.hpp"
#include "fragments.hpp"
#include "guest_ports.hpp"
#include "our_elements.hpp"
#include "splice.hpp"

namespace vfpass::domain {
namespace {

// Removes our element, or the whole <metadata> if vfpass added it and nothing else is in it.
Splice metadataRemoval(const Document& document, pugi::xml_node ours) {
  const auto text = document.text();
  const auto& outer = document.span(ours.parent());
  const auto inner = removal(text, document.span(ours));
  const bool alone = isBlank(text.substr(outer.contentBegin, inner.begin - outer.contentBegin)) &&
                     isBlank(text.substr(inner.end, outer.contentEnd - inner.end));
  const auto container = containerOf(attributeText(ours, containerAttribute));
  if (!alone || container == Container::present) {
    return inner;
  }
  if (container == Container::selfClosing) {
    return {outer.contentBegin - 1, outer.end, "/>"};
  }
  return removal(text, outer);
}

bool isPortOfAny(pugi::xml_node port, const std::vector<Lease>& leases) {
  const auto controllers = controllersOf(leases);
  return std::any_of(leases.begin(), leases.end(),
                     [port](const Lease& lease) { return isPortOf(port, lease); }) ||
         std::any_of(controllers.begin(), controllers.end(),
                     [port](const GuestController& each) { return isController(port, each); });
}

}  // namespace

std::string withoutOurs(std::string_view xml, const std::vector<Lease>& wanted) {
  const Document document(xml);
  std::vector<Splice> splices = removeEdits(document);
  for (const auto metadata : ourMetadata(document)) {
    splices.push_back(metadataRemoval(document, metadata));
  }
  const auto ports = portsInForeignUse(document);
  const std::set<pugi::xml_node> kept(ports.begin(), ports.end());
  for (const auto device : ourDevices(document)) {
    if (!kept.contains(device)) {
      splices.push_back(removal(xml, document.span(device)));
    } else if (!isPortOfAny(device, wanted)) {
      splices.push_back(removal(xml, document.span(device.child("alias"))));
    }
  }
  return applySplices(xml, std::move(splices));
}

}  // namespace vfpass::domain
