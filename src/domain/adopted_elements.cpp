#include "our_elements.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "device_xml.hpp"
#include "document.hpp"
#include "domain_edits.hpp"
#include "metadata.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

// A mapping cannot have an NVMe disk.
std::optional<PciAddress> hostFunction(pugi::xml_node device) {
  const bool disk = std::string_view(device.name()) == "disk";
  const auto host = hostAddressElement(device);
  return host && !disk ? readPciAddress(*host) : std::nullopt;
}

// The host function of an element that can be taken over.
std::optional<PciAddress> adoptableDevice(pugi::xml_node device) {
  return isOurAlias(aliasOf(device)) ? std::nullopt : hostFunction(device);
}

// libvirt sets one tag on the VF of an <interface>.
std::optional<std::uint16_t> vlanOf(pugi::xml_node device) {
  const auto vlan = device.child("vlan");
  if (!vlan) {
    return std::nullopt;
  }
  const auto tag = vlan.child("tag");
  const bool single = !tag.next_sibling("tag") && attributeText(vlan, "trunk") != "yes";
  const unsigned id = tag.attribute("id").as_uint();
  return single && id <= 4094 ? static_cast<std::uint16_t>(id) : std::uint16_t{0};
}

HostElement readElement(const Document& document, pugi::xml_node device,
                        const PciAddress& address) {
  HostElement element;
  element.device = address;
  element.interface = std::string_view(device.name()) == "interface";
  element.managed = attributeText(device, "managed") == "yes";
  if (element.interface) {
    element.mac = parseMacAddress(attributeText(device.child("mac"), "address"));
    element.vlan = vlanOf(device);
  }
  element.partner = attributeText(device.child("teaming"), "persistent");
  element.guestAddress = guestAddressOf(device);
  const ElementSpan& span = document.span(device);
  element.text = document.text().substr(span.begin, span.end - span.begin);
  return element;
}

}  // namespace

pugi::xml_node findAdopted(const Document& document, const Lease& lease) {
  pugi::xml_node left;
  for (const auto device : document.devices()) {
    if (hostFunction(device) != lease.device) {
      continue;
    }
    if (!isOurAlias(aliasOf(device))) {
      return device;
    }
    left = device;
  }
  return left;
}

std::vector<Lease> adoptedLeasesIn(const Document& document) {
  const auto found = ourMetadata(document);
  if (found.size() != 1 || !document.metadataFault().empty()) {
    return {};
  }
  try {
    std::vector<Lease> leases = readMetadata(found.front(), "").leases;
    std::erase_if(leases, [](const Lease& lease) { return !isAdopted(lease); });
    return leases;
  } catch (const Error&) {
    return {};
  }
}

std::vector<HostElement> hostElements(std::string_view xml) {
  const Document document(xml);
  std::vector<HostElement> elements;
  for (const auto device : document.devices()) {
    if (const auto address = adoptableDevice(device)) {
      elements.push_back(readElement(document, device, *address));
    }
  }
  return elements;
}

std::vector<HostElement> runningHostElements(std::string_view liveXml,
                                             const std::vector<Lease>& leases) {
  const Document document(liveXml);
  std::vector<HostElement> elements;
  for (const auto device : document.devices()) {
    const auto address = hostFunction(device);
    const bool leased = address && isOurAlias(aliasOf(device)) &&
                        std::ranges::find(leases, *address, &Lease::device) != leases.end();
    if (address && !leased) {
      elements.push_back(readElement(document, device, *address));
    }
  }
  return elements;
}

std::set<std::string> entriesWithDevice(std::string_view xml, const std::vector<Lease>& leases) {
  std::set<std::string> names = devicesOfOurs(xml);
  if (std::ranges::none_of(leases, isAdopted)) {
    return names;
  }
  const Document document(xml);
  for (const Lease& lease : leases) {
    if (isAdopted(lease) && findAdopted(document, lease)) {
      names.insert(lease.entry);
    }
  }
  return names;
}

std::string aliasOfDevice(std::string_view xml, const Lease& lease) {
  if (!isAdopted(lease)) {
    return deviceAlias(lease);
  }
  const Document document(xml);
  return std::string(aliasOf(findAdopted(document, lease)));
}

namespace {

constexpr std::string_view keptPrefix = "ua-kept-";

// Replaces text inside the start tag of an element, whose attributes libvirt quotes in one form.
void replaceInTag(const Document& document, pugi::xml_node node, std::string_view old,
                  std::string_view now, std::vector<Splice>& splices) {
  const ElementSpan& span = document.span(node);
  const auto tag = document.text().substr(span.begin, span.contentBegin - span.begin);
  if (const auto at = tag.find(old); at != std::string_view::npos) {
    splices.push_back({span.begin + at, span.begin + at + old.size(), std::string(now)});
  }
}

// In either kind of quotes.
void replaceAttribute(const Document& document, pugi::xml_node node, const std::string& name,
                      const std::string& old, const std::string& now,
                      std::vector<Splice>& splices) {
  for (const std::string quote : {"'", "\""}) {
    replaceInTag(document, node, name + "=" + quote + old + quote, name + "=" + quote + now + quote,
                 splices);
  }
}

// libvirt writes managed='no' on a <hostdev> and nothing on an <interface>.
void makeManaged(const Document& document, pugi::xml_node device, std::vector<Splice>& splices) {
  const auto managed = device.attribute("managed");
  if (!managed) {
    const std::size_t at = document.span(device).begin + 1 + std::string_view(device.name()).size();
    splices.push_back({at, at, " managed='yes'"});
  } else if (std::string_view(managed.value()) != "yes") {
    replaceAttribute(document, device, "managed", "no", "yes", splices);
  }
}

// GPUDirect cliques name devices by alias (`<qemu:override>`).
void renameOverrides(const Document& document, std::vector<Splice>& splices) {
  for (const auto device : document.domain().child("qemu:override").children("qemu:device")) {
    if (isOurAlias(attributeText(device, "alias"))) {
      replaceInTag(document, device, aliasPrefix, keptPrefix, splices);
    }
  }
}

}  // namespace

std::string withDevicesKept(std::string_view xml, const std::vector<Lease>& leases) {
  const Document document(xml);
  std::vector<Splice> splices;
  for (const auto device : ourDevices(document)) {
    replaceInTag(document, device.child("alias"), aliasPrefix, keptPrefix, splices);
    const bool leased = std::ranges::any_of(
        leases, [&](const Lease& lease) { return aliasOf(device) == deviceAlias(lease); });
    if (leased && hostAddressElement(device)) {
      makeManaged(document, device, splices);
    }
  }
  renameOverrides(document, splices);
  for (const auto metadata : ourMetadata(document)) {
    const Splice splice = removal(xml, document.span(metadata));
    std::ranges::move(removeFrom(document, metadata.parent(), metadataContainer(metadata),
                                 {{splice.begin, splice}}),
                      std::back_inserter(splices));
  }
  return applySplices(xml, std::move(splices));
}

namespace {

bool isKeptDevice(pugi::xml_node device, const Lease& lease) {
  const auto host = hostAddressElement(device);
  return host && !isAdopted(lease) && readPciAddress(*host) == lease.device &&
         aliasOf(device) == std::string(keptPrefix) + lease.entry;
}

// Adopted elements look the same with and without a lease; only what attach set beside them shows
// that a detach has left them.
bool areLeftAdopted(const Document& document, const std::vector<Lease>& leases) {
  const auto edits = editsOf(leases);
  return !edits.empty() && carriesEdits(document, edits) &&
         std::ranges::all_of(leases, [&](const Lease& lease) {
           return isAdopted(lease) && findAdopted(document, lease);
         });
}

// Those of a kept device, its root port, and the controllers of a mirrored tree.
std::set<std::string, std::less<>> keptAliases(const std::vector<Lease>& leases) {
  std::set<std::string, std::less<>> aliases;
  const auto add = [&](const std::string& ours) {
    aliases.insert(std::string(keptPrefix) + ours.substr(aliasPrefix.size()));
  };
  for (const Lease& lease : leases) {
    if (!isAdopted(lease)) {  // whose alias, also one of an earlier detach, is the domain's own
      add(deviceAlias(lease));
      add(portAlias(lease));
    }
  }
  for (const GuestController& controller : controllersOf(leases)) {
    add(controllerAlias(controller));
  }
  return aliases;
}

}  // namespace

std::optional<std::string> withDevicesTakenBack(std::string_view xml,
                                                const std::vector<Lease>& leases) {
  const Document document(xml);
  const auto aliases = keptAliases(leases);
  std::vector<Splice> splices;
  bool found = areLeftAdopted(document, leases);
  for (const auto device : document.devices()) {
    if (aliases.contains(aliasOf(device))) {
      replaceInTag(document, device.child("alias"), keptPrefix, aliasPrefix, splices);
    }
    for (const Lease& lease : leases) {
      if (isKeptDevice(device, lease)) {
        found = true;
        if (!lease.managed) {
          replaceAttribute(document, device, "managed", "yes", "no", splices);
        }
      }
    }
  }
  if (!found || !ourMetadata(document).empty()) {
    return std::nullopt;
  }
  for (const auto device : document.domain().child("qemu:override").children("qemu:device")) {
    if (aliases.contains(attributeText(device, "alias"))) {
      replaceInTag(document, device, keptPrefix, aliasPrefix, splices);
    }
  }
  return applySplices(xml, std::move(splices));
}

}  // namespace vfpass::domain
