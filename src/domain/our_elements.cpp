#include "our_elements.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "document.hpp"
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
  return smallNumber(attributeText(controller, "index"));
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

namespace {

std::set<unsigned> busesOfOthers(const Document& document) {
  std::set<unsigned> buses;
  for (const auto device : document.devices()) {
    const auto address = guestAddressOf(device);
    if (address && !isOurAlias(aliasOf(device))) {
      buses.insert(address->bus);
    }
  }
  return buses;
}

std::map<unsigned, pugi::xml_node> ourControllers(const Document& document) {
  std::map<unsigned, pugi::xml_node> controllers;
  for (const auto device : ourDevices(document)) {
    const auto index = isPciController(device) ? controllerIndex(device) : std::nullopt;
    if (index) {
      controllers.emplace(*index, device);
    }
  }
  return controllers;
}

// True for function 0 of a slot that has one of these ports.
bool leads(const PciAddress& address, const std::set<PciAddress>& places) {
  return address.function == 0 && std::ranges::any_of(places, [&address](PciAddress place) {
           place.function = 0;
           return place == address;
         });
}

}  // namespace

std::vector<pugi::xml_node> portsInForeignUse(const Document& document) {
  auto buses = busesOfOthers(document);
  const auto controllers = ourControllers(document);
  // A controller's index is higher than its parent's, so the reverse order visits children first.
  std::set<PciAddress> places;
  for (auto at = controllers.rbegin(); at != controllers.rend(); ++at) {
    const auto address = guestAddressOf(at->second);
    if (address && buses.contains(at->first)) {
      places.insert(*address);
      buses.insert(address->bus);
    }
  }
  std::vector<pugi::xml_node> kept;
  for (const auto port : ourDevices(document)) {
    const auto address = guestAddressOf(port);
    if (isPciController(port) && address &&
        (places.contains(*address) || leads(*address, places))) {
      kept.push_back(port);
    }
  }
  return kept;
}

bool isPortOf(pugi::xml_node device, const Lease& lease) {
  const auto port = lease.guest.port.value_or(RootPort{});
  const bool multifunction = attributeText(device.child("address"), "multifunction") == "on";
  return lease.guest.port && isPciController(device) && aliasOf(device) == portAlias(lease) &&
         attributeText(device, "model") == "pcie-root-port" &&
         controllerIndex(device) == port.index && guestAddressOf(device) == port.address &&
         multifunction == port.multifunction;
}

bool isController(pugi::xml_node device, const GuestController& controller) {
  if (!isPciController(device) || aliasOf(device) != controllerAlias(controller)) {
    return false;
  }
  constexpr unsigned none = 256;  // valid neither as a chassis nor as a bus number
  const PciController found = readController(device, controllerIndex(device).value_or(none));
  const bool expander = controller.model == ControllerModel::expanderBus;
  const bool port = !expander && controller.model != ControllerModel::upstreamPort;
  return found.index == controller.index && found.model == toString(controller.model) &&
         found.address == controller.address &&
         found.node.value_or(none) == controller.node.value_or(none) &&
         found.busNumber.value_or(none) == (expander ? controller.busNumber : none) &&
         found.chassis.value_or(none) == (port ? controller.index : none) &&
         found.hotplug == controller.hotplug;
}

std::vector<GuestController> controllersOf(const std::vector<Lease>& leases) {
  std::set<GuestController> controllers;
  for (const Lease& lease : leases) {
    controllers.insert(lease.guest.controllers.begin(), lease.guest.controllers.end());
  }
  std::vector<GuestController> sorted(controllers.begin(), controllers.end());
  std::ranges::stable_sort(sorted, [](const GuestController& one, const GuestController& other) {
    return one.index < other.index;
  });
  return sorted;
}

}  // namespace vfpass::domain
