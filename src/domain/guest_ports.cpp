#include "guest_ports.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "controller_element.hpp"
#include "our_elements.hpp"
#include "pci_attributes.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::domain {
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
  return address.function == 0 &&
         std::any_of(places.begin(), places.end(), [&address](PciAddress place) {
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
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const GuestController& one, const GuestController& other) {
                     return one.index < other.index;
                   });
  return sorted;
}

}  // namespace vfpass::domain
