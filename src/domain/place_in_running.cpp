#include <algorithm>
#include <map>

#include "our_elements.hpp"
#include "pci_attributes.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/guest_machine.hpp"

namespace vfpass::domain {
namespace {

struct Port {
  PciAddress address;
  bool multifunction = false;
  bool ours = false;
  bool takesDevices = true;  ///< hotplug is enabled
};

// Ports, buses and addresses in use in one XML.
struct Occupancy {
  bool conventional = false;
  GuestMachine machine;
  std::map<unsigned, Port> ports;   // by controller index, which is the bus behind the port
  std::set<unsigned> controllers;   // indexes of all PCI controllers
  std::set<unsigned> usedBuses;     // buses with a device on them
  std::set<PciAddress> usedPlaces;  // addresses of all devices
};

bool isPort(pugi::xml_node device) {
  const auto model = attributeText(device, "model");
  return model == "pcie-root-port" || model == "pcie-switch-downstream-port";
}

Port readPort(pugi::xml_node device, const PciAddress& address) {
  return {address, attributeText(device.child("address"), "multifunction") == "on",
          isOurAlias(aliasOf(device)), attributeText(device.child("target"), "hotplug") != "off"};
}

Occupancy readOccupancy(std::string_view xml) {
  const Document document(xml);
  Occupancy occupancy;
  occupancy.machine = readGuestMachine(xml);
  for (const auto device : document.devices()) {
    const auto address = guestAddressOf(device);
    if (address) {
      occupancy.usedPlaces.insert(*address);
      occupancy.usedBuses.insert(address->bus);
    }
    const auto index = isPciController(device) ? controllerIndex(device) : std::nullopt;
    if (!index) {
      continue;
    }
    occupancy.controllers.insert(*index);
    if (*index == 0) {
      occupancy.conventional = attributeText(device, "model") == "pci-root";
    } else if (address && isPort(device)) {
      occupancy.ports[*index] = readPort(device, *address);
    }
  }
  return occupancy;
}

GuestPlacement behind(unsigned index) {
  return {PciAddress{0, static_cast<std::uint8_t>(index), 0, 0}, std::nullopt, {}};
}

// The controllers of our tree from the root bus to this port. Empty for our flat ports, which are
// removed with their lease.
std::vector<GuestController> treeTo(const GuestMachine& machine, unsigned port) {
  std::vector<GuestController> path;
  const PciController* at = machine.controller(port);
  while (at != nullptr && at->index != 0 && at->address &&
         path.size() <= machine.controllers.size()) {
    const auto model = parseControllerModel(at->model);
    GuestController controller;
    controller.index = at->index;
    if (at->ourAlias != controllerAlias(controller) || !model || at->address->bus >= at->index) {
      return {};
    }
    controller.model = *model;
    controller.address = *at->address;
    controller.node = at->node;
    controller.busNumber = at->busNumber.value_or(0);
    controller.hotplug = at->hotplug;
    path.push_back(controller);
    at = machine.controller(at->address->bus);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

// The place behind a port of the running domain, if it is also possible in the persistent XML.
std::optional<GuestPlacement> sharedPlace(unsigned index, const Port& live,
                                          const Occupancy& running, const Occupancy& config) {
  GuestPlacement placement = behind(index);
  const auto same = config.ports.find(index);
  if (same != config.ports.end()) {
    if (same->second.ours) {
      placement.controllers = treeTo(config.machine, index);
    }
    const bool fits = same->second.address == live.address &&
                      same->second.ours == !placement.controllers.empty() &&
                      !config.usedBuses.contains(index);
    return fits ? std::optional(placement) : std::nullopt;
  }
  if (live.ours) {
    placement.controllers = treeTo(running.machine, index);
    const bool free =
        std::all_of(placement.controllers.begin(), placement.controllers.end(),
                    [&config](const GuestController& each) {
                      return !config.controllers.contains(each.index) &&
                             (each.address.bus != 0 || !config.usedPlaces.contains(each.address));
                    });
    if (!placement.controllers.empty()) {
      return free ? std::optional(placement) : std::nullopt;
    }
  }
  // Only the running domain has the port; usually vfpass has removed it from the configuration.
  if (config.controllers.contains(index) || live.address.bus != 0 ||
      config.usedPlaces.contains(live.address)) {
    return std::nullopt;
  }
  placement.port = RootPort{index, live.address, live.multifunction};
  return placement;
}

std::vector<GuestPlacement> placeBehindPorts(const Occupancy& live, const Occupancy* config) {
  std::vector<GuestPlacement> placements;
  for (const auto& [index, port] : live.ports) {
    if (live.usedBuses.contains(index) || !port.takesDevices) {
      continue;
    }
    const auto placement =
        config == nullptr ? behind(index) : sharedPlace(index, port, live, *config);
    if (placement) {
      placements.push_back(*placement);
    }
  }
  return placements;
}

// Slot 0 is the host bridge, 1 the PIIX3, 2 the graphics card.
std::vector<GuestPlacement> placeOnRootBus(const Occupancy& live, const Occupancy* config) {
  std::vector<GuestPlacement> placements;
  for (std::uint8_t slot = 3; slot < 0x20; ++slot) {
    const auto used = [slot](const Occupancy& occupancy) {
      return std::any_of(
          occupancy.usedPlaces.begin(), occupancy.usedPlaces.end(),
          [slot](const PciAddress& place) { return place.bus == 0 && place.slot == slot; });
    };
    if (!used(live) && (config == nullptr || !used(*config))) {
      placements.push_back({PciAddress{0, 0, slot, 0}, std::nullopt, {}});
    }
  }
  return placements;
}

}  // namespace

std::vector<GuestPlacement> placeInRunning(std::string_view liveXml,
                                           std::string_view persistentXml) {
  const Occupancy live = readOccupancy(liveXml);
  const auto config =
      persistentXml.empty() ? std::nullopt : std::optional(readOccupancy(persistentXml));
  return live.conventional ? placeOnRootBus(live, config ? &*config : nullptr)
                           : placeBehindPorts(live, config ? &*config : nullptr);
}

bool fitsRunning(std::string_view liveXml, const GuestPlacement& placement) {
  const Occupancy live = readOccupancy(liveXml);
  if (live.usedPlaces.contains(placement.address)) {
    return false;
  }
  if (placement.address.bus == 0) {
    return live.conventional;
  }
  const auto port = live.ports.find(placement.address.bus);
  return port != live.ports.end() && port->second.takesDevices &&
         !live.usedBuses.contains(placement.address.bus) &&
         (!placement.port || placement.port->address == port->second.address);
}

std::set<std::string> devicesOfOurs(std::string_view xml) {
  const Document document(xml);
  const std::string prefix = deviceAlias(Lease{});
  std::set<std::string> names;
  for (const auto device : ourDevices(document)) {
    if (!isPciController(device)) {
      names.emplace(aliasOf(device).substr(prefix.size()));
    }
  }
  return names;
}

}  // namespace vfpass::domain
