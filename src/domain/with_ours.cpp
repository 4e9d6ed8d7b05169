#include "with_ours.hpp"

#include <algorithm>

#include "bad_xml.hpp"
#include "domain_edits.hpp"
#include "fragments.hpp"
#include "guest_ports.hpp"
#include "our_elements.hpp"
#include "splice.hpp"

namespace vfpass::domain {
namespace {

Splice metadataInsertion(const Document& document, const std::vector<Lease>& leases,
                         const SealKey& key) {
  Containers containers{Container::absent, containersOf(document)};
  const auto text = document.text();
  const auto metadata = document.domain().child("metadata");
  if (!metadata) {
    auto before = document.domain().child("name");
    for (const char* name : {"uuid", "genid", "title", "description"}) {
      const auto node = document.domain().child(name);
      before = node && document.span(node).end > document.span(before).end ? node : before;
    }
    const auto& span = document.span(before);
    const auto indentation = indentationOf(text, span, "  ");
    const auto inner = metadataFragment(leases, key, containers, indentation + "  ");
    return {span.end, span.end,
            "\n" + indentation + "<metadata>\n" + indentation + "  " + inner + "\n" + indentation +
                "</metadata>"};
  }
  const auto& outer = document.span(metadata);
  const auto outerIndentation = indentationOf(text, outer, "  ");
  const auto indentation = outerIndentation + "  ";
  if (outer.selfClosing()) {
    containers.metadata = Container::selfClosing;
    const auto inner = metadataFragment(leases, key, containers, indentation);
    return {outer.end - 2, outer.end,
            ">\n" + indentation + inner + "\n" + outerIndentation + "</metadata>"};
  }
  containers.metadata = Container::present;
  const auto last = lastElement(metadata);
  const auto at = last ? document.span(last).end : outer.contentBegin;
  return {at, at, "\n" + indentation + metadataFragment(leases, key, containers, indentation)};
}

// New devices go after the last one of their kind, otherwise at the end.
struct Place {
  std::size_t at = 0;
  std::string indentation;
};

Place placeFor(const Document& document, const std::string& elementName) {
  pugi::xml_node last = lastElement(document.devices());
  for (const auto device : document.devices().children(elementName.c_str())) {
    last = device;
  }
  if (!last || std::string_view(last.name()) != elementName) {
    last = lastElement(document.devices());
  }
  const auto& span = document.span(last);
  return {span.end, indentationOf(document.text(), span, "    ")};
}

void insertPort(const Document& document, const Lease& lease, const Templates& templates,
                std::vector<Splice>& splices) {
  const auto ours = ourDevices(document);
  const bool exists = std::any_of(ours.begin(), ours.end(),
                                  [&lease](pugi::xml_node port) { return isPortOf(port, lease); });
  if (lease.guest.port && !exists) {
    const auto [at, indentation] = placeFor(document, "controller");
    splices.push_back({at, at, "\n" + indentation + portFragment(lease, templates, indentation)});
  }
}

void insertControllers(const Document& document, const std::vector<Lease>& leases,
                       const Templates& templates, std::vector<Splice>& splices) {
  const auto ours = ourDevices(document);
  const auto [at, indentation] = placeFor(document, "controller");
  for (const GuestController& controller : controllersOf(leases)) {
    const bool exists = std::any_of(ours.begin(), ours.end(), [&controller](pugi::xml_node device) {
      return isController(device, controller);
    });
    if (!exists) {
      splices.push_back(
          {at, at, "\n" + indentation + controllerFragment(controller, templates, indentation)});
    }
  }
}

void insertDevice(const Document& document, const Lease& lease, const Templates& templates,
                  std::vector<Splice>& splices) {
  const auto [at, indentation] = placeFor(document, isInterface(lease) ? "interface" : "hostdev");
  splices.push_back({at, at, "\n" + indentation + deviceFragment(lease, templates, indentation)});
}

}  // namespace

std::string withOurs(std::string_view xml, const std::vector<Lease>& leases,
                     const Templates& templates, const SealKey& key) {
  const Document document(xml);
  if (!lastElement(document.devices())) {
    throw badXml("no devices");
  }
  std::vector<Splice> splices = insertEdits(document, editsOf(leases));
  splices.push_back(metadataInsertion(document, leases, key));
  for (const auto& lease : leases) {
    insertPort(document, lease, templates, splices);
  }
  insertControllers(document, leases, templates, splices);
  for (const auto& lease : leases) {
    insertDevice(document, lease, templates, splices);
  }
  return applySplices(xml, std::move(splices));
}

}  // namespace vfpass::domain
