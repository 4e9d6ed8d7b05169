#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device_xml.hpp"
#include "document.hpp"
#include "domain_edits.hpp"
#include "our_elements.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/error.hpp"
#include "xml_source.hpp"

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
  containers.metadata = outer.selfClosing() ? Container::selfClosing : Container::present;
  const auto indentation = indentationOf(text, outer, "  ") + "  ";
  return insertInto(document, metadata,
                    "\n" + indentation + metadataFragment(leases, key, containers, indentation));
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
  const bool exists =
      std::ranges::any_of(ours, [&lease](pugi::xml_node port) { return isPortOf(port, lease); });
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
    const bool exists = std::ranges::any_of(
        ours, [&controller](pugi::xml_node device) { return isController(device, controller); });
    if (!exists) {
      splices.push_back(
          {at, at, "\n" + indentation + controllerFragment(controller, templates, indentation)});
    }
  }
}

void insertDevice(const Document& document, const Lease& lease, const Templates& templates,
                  std::vector<Splice>& splices) {
  // An adopted element stays where it is, and as it is recorded.
  if (const auto own = isAdopted(lease) ? findAdopted(document, lease) : pugi::xml_node()) {
    const ElementSpan& span = document.span(own);
    if (!compareElement(own, lease).empty()) {
      splices.push_back({span.begin, span.end, lease.adoptedElement});
    }
    return;
  }
  const auto [at, indentation] = placeFor(document, isInterface(lease) ? "interface" : "hostdev");
  splices.push_back({at, at, "\n" + indentation + deviceFragment(lease, templates, indentation)});
}

// Adds one root port, one device and one metadata entry per lease to a domain XML without elements
// of ours, and seals the metadata. `leases` is not empty.
std::string insertElements(std::string_view xml, const std::vector<Lease>& leases,
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

Error conflict(const Lease& lease, const std::string& reason) {
  return Error(
      "domain " + printable(lease.domainName) + ": cannot add '" + lease.entry + "': " + reason,
      "detach the domain's devices, then attach them again");
}

// All leases of a domain name the same tree.
void requireOneTree(const std::vector<Lease>& leases, std::set<std::string> aliases) {
  for (const GuestController& controller : controllersOf(leases)) {
    if (!aliases.insert(controllerAlias(controller)).second) {
      throw conflict(leases.front(), "controller " + std::to_string(controller.index) +
                                         " of the mirrored tree is claimed twice");
    }
  }
  for (const auto& lease : leases) {
    const auto& own = lease.guest.controllers;
    const bool reached = std::ranges::any_of(own, [&lease](const GuestController& controller) {
      return controller.index == lease.guest.address.bus;
    });
    if (!own.empty() && !reached) {
      throw conflict(lease, "its lease names no controller for its guest bus");
    }
  }
}

void requireConsistentLeases(const Uuid& domain, const std::vector<Lease>& leases) {
  std::set<std::string> aliases;
  std::set<PciAddress> ports;
  for (const auto& lease : leases) {
    if (lease.domain != domain) {
      throw conflict(lease, "the lease belongs to another domain: " + toString(lease.domain));
    }
    if (!aliases.insert(deviceAlias(lease)).second || !aliases.insert(portAlias(lease)).second) {
      throw conflict(lease, "another device has the same alias");
    }
    if (lease.guest.port) {
      ports.insert(lease.guest.port->address);
    }
  }
  requireOneTree(leases, aliases);
  for (const auto& lease : leases) {
    auto leader = lease.guest.port.value_or(RootPort{}).address;
    leader.function = 0;
    // A guest scans functions 1 to 7 of a slot only if function 0 exists.
    if (lease.guest.port && !ports.contains(leader)) {
      throw conflict(lease, "its root port shares a slot that would lose its function 0");
    }
  }
}

}  // namespace

std::string withLeases(std::string_view xml, const std::vector<Lease>& leases,
                       const Templates& templates, const SealKey& key) {
  requireConsistentLeases(domainUuid(Document(xml)), leases);
  // A detach that left the devices to the domain is rolled back.
  if (const auto back = withDevicesTakenBack(xml, leases)) {
    const Document document(*back);
    return applySplices(*back, {metadataInsertion(document, leases, key)});
  }
  const auto bare = removeElements(xml, leases);
  return leases.empty() ? bare : insertElements(bare, leases, templates, key);
}

namespace {

// The VLAN that libvirt sets on the VF of an `<interface>`.
void replaceVlan(pugi::xml_node device, const Lease& lease) {
  pugi::xml_document tree;
  const std::string text = deviceFragment(lease, builtInTemplates(), "");
  tree.load_buffer(text.data(), text.size());
  device.remove_child("vlan");
  if (const auto vlan = tree.document_element().child("vlan")) {
    device.insert_copy_after(vlan, device.child("source"));
  }
}

// An adopted element names its VF, so its lease is never replaced by one for another VF.
std::optional<Splice> hostReplacement(const Document& document, pugi::xml_node device,
                                      const Lease& lease) {
  if (isAdopted(lease) || aliasOf(device) != deviceAlias(lease)) {
    return std::nullopt;
  }
  pugi::xml_document tree;
  auto copy = tree.append_copy(device);
  if ((attributeText(copy, "managed") == "yes") != lease.managed) {
    setAttribute(copy, "managed", lease.managed ? "yes" : "no");
  }
  writePciAddress(copy.child("source").child("address"), lease.device);
  if (isInterface(lease)) {
    replaceVlan(copy, lease);
  }
  const ElementSpan& span = document.span(device);
  const auto indentation = indentationOf(document.text(), span, "    ");
  return Splice{span.begin, span.end,
                elementText(copy, indentation, pugi::format_attribute_single_quote)};
}

// What the metadata records of other elements.
Containers recordedContainers(const Document& document) {
  const auto found = ourMetadata(document);
  if (found.empty()) {
    throw badXml("no vfpass metadata");
  }
  Containers containers{metadataContainer(found.front()), {}};
  for (const RecordedEdit& recorded : recordedEdits(found)) {
    containers.edits[recorded.edit.place] = recorded.container;
  }
  return containers;
}

Splice metadataReplacement(const Document& document, const std::vector<Lease>& leases,
                           const SealKey& key, const Containers& containers) {
  const ElementSpan& span = document.span(ourMetadata(document).front());
  const auto indentation = indentationOf(document.text(), span, "    ");
  return {span.begin, span.end, metadataFragment(leases, key, containers, indentation)};
}

}  // namespace

std::string withReplacedLeases(std::string_view xml, const std::vector<Lease>& leases,
                               const SealKey& key) {
  requireConsistentLeases(domainUuid(Document(xml)), leases);
  Containers containers = recordedContainers(Document(xml));
  const std::string text = withHostEdits(xml, editsOf(leases), containers.edits);
  const Document document(text);
  std::vector<Splice> splices{metadataReplacement(document, leases, key, containers)};
  for (const auto device : ourDevices(document)) {
    for (const Lease& lease : leases) {
      if (auto splice = hostReplacement(document, device, lease)) {
        splices.push_back(std::move(*splice));
      }
    }
  }
  return applySplices(text, std::move(splices));
}

namespace {

// Sorted, so that the order of leases does not matter.
std::vector<Lease> comparable(const std::vector<Lease>& leases) {
  std::vector<Lease> result;
  for (const auto& lease : leases) {
    result.push_back(termsOf(lease));
  }
  std::ranges::sort(result);
  return result;
}

}  // namespace

bool carriesLeases(std::string_view xml, const std::vector<Lease>& leases, const SealKey& key) {
  const auto parsed = parseDomain(xml);
  return parsed.managed == !leases.empty() && sealFault(parsed, key).empty() &&
         comparable(parsed.leases) == comparable(leases) &&
         elementDifferences(xml, leases).empty() && carriesEdits(Document(xml), editsOf(leases));
}

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
