#include <algorithm>
#include <set>

#include "domain_edits.hpp"
#include "fragments.hpp"
#include "our_elements.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

bool isPortOfAny(pugi::xml_node port, const std::vector<Lease>& leases) {
  const auto controllers = controllersOf(leases);
  return std::ranges::any_of(leases,
                             [port](const Lease& lease) { return isPortOf(port, lease); }) ||
         std::ranges::any_of(
             controllers, [port](const GuestController& each) { return isController(port, each); });
}

}  // namespace

std::string removeElements(std::string_view xml, const std::vector<Lease>& wanted) {
  const Document document(xml);
  std::vector<Splice> splices = removeEdits(document);
  for (const auto metadata : ourMetadata(document)) {
    // Also the whole <metadata> if vfpass added it and nothing else is in it.
    const Splice splice = removal(xml, document.span(metadata));
    const auto container = metadataContainer(metadata);
    std::ranges::move(removeFrom(document, metadata.parent(), container, {{splice.begin, splice}}),
                      std::back_inserter(splices));
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
