#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "document.hpp"
#include "our_elements.hpp"
#include "qemu_arguments.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/guest_tree.hpp"
#include "xml_source.hpp"

namespace vfpass::domain {
namespace {

constexpr std::size_t functionsPerSlot = 8;
constexpr unsigned highestBus = 0xff;

// Slots of bus 0 in order of preference; expressRootSlots is the list for q35.
// i440fx: 0 is the host bridge, 1 the PIIX3 with IDE and USB, 2 the graphics card.
constexpr std::array<std::uint8_t, 29> conventionalSlots{
    0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
    0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f};

enum class RootBus { none, conventional, express };

struct GuestBus {
  RootBus root = RootBus::none;
  std::set<std::uint8_t> usedSlots;  // of bus 0
  std::set<unsigned> usedIndexes;    // of PCI controllers, and buses that devices name
};

Error noRoom(const std::string& what) {
  return Error("the guest has no free " + what + " for another device",
               "remove PCI devices or controllers that the guest does not need");
}

void addController(pugi::xml_node device, GuestBus& bus) {
  const auto index = controllerIndex(device);
  if (!index) {
    throw badXml("PCI controller without a valid index");
  }
  bus.usedIndexes.insert(*index);
  const auto model = attributeText(device, "model");
  if (*index == 0) {
    bus.root = model == "pcie-root"  ? RootBus::express
               : model == "pci-root" ? RootBus::conventional
                                     : RootBus::none;
  }
}

GuestBus readGuestBus(const Document& document) {
  GuestBus bus;
  for (const auto device : document.devices()) {
    if (isPciController(device)) {
      addController(device, bus);
    }
    const auto address = guestAddressOf(device);
    if (address && address->bus == 0) {
      bus.usedSlots.insert(address->slot);
    } else if (address) {
      bus.usedIndexes.insert(address->bus);
    }
  }
  for (const QemuDevice& device : readQemuArguments(document).devices) {
    if (const auto place = rootBusPlace(device)) {
      bus.usedSlots.insert(place->slot);
    }
  }
  if (bus.root == RootBus::none) {
    throw Error("domain XML has no PCI root bus",
                "define the domain with libvirt first; vfpass supports q35 and i440fx machines",
                ExitCode::badInput);
  }
  return bus;
}

std::vector<std::uint8_t> freeSlots(const GuestBus& bus) {
  std::vector<std::uint8_t> free;
  for (const auto slot : bus.root == RootBus::express ? expressRootSlots : conventionalSlots) {
    if (!bus.usedSlots.contains(slot)) {
      free.push_back(slot);
    }
  }
  return free;
}

// The lowest free index: libvirt fills every gap below the highest index with a root port that it
// never removes.
std::uint8_t takeIndex(GuestBus& bus) {
  for (unsigned index = 1; index <= highestBus; ++index) {
    if (bus.usedIndexes.insert(index).second) {
      return static_cast<std::uint8_t>(index);
    }
  }
  throw noRoom("PCI bus number");
}

GuestPlacement behindPort(GuestBus& bus, const PciAddress& portAddress, bool multifunction) {
  const auto index = takeIndex(bus);
  return {PciAddress{0, index, 0, 0}, RootPort{index, portAddress, multifunction}, {}};
}

std::vector<GuestPlacement> placeBehindPorts(GuestBus bus, std::size_t count) {
  const auto free = freeSlots(bus);
  const std::size_t together = count <= free.size() ? 1 : functionsPerSlot;
  if (count > free.size() * together) {
    throw noRoom("slot of PCI bus 0");
  }
  std::vector<GuestPlacement> placements;
  for (std::size_t device = 0; device < count; ++device) {
    const auto function = static_cast<std::uint8_t>(device % together);
    const PciAddress port{0, 0, free[device / together], function};
    const bool leads = function == 0 && together > 1 && device + 1 < count;
    placements.push_back(behindPort(bus, port, leads));
  }
  return placements;
}

std::vector<GuestPlacement> placeOnRootBus(const GuestBus& bus, std::size_t count) {
  const auto free = freeSlots(bus);
  if (count > free.size()) {
    throw noRoom("slot of PCI bus 0");
  }
  std::vector<GuestPlacement> placements;
  for (std::size_t device = 0; device < count; ++device) {
    placements.push_back({PciAddress{0, 0, free[device], 0}, std::nullopt, {}});
  }
  return placements;
}

}  // namespace

std::vector<GuestPlacement> placeDevices(std::string_view xml, std::size_t count) {
  const auto bus = readGuestBus(Document(xml));
  return bus.root == RootBus::express ? placeBehindPorts(bus, count) : placeOnRootBus(bus, count);
}

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
  for (const QemuDevice& device : readQemuArguments(document).devices) {
    if (const auto place = rootBusPlace(device)) {
      occupancy.usedPlaces.insert(*place);
    }
  }
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
  // Both XMLs have the port.
  if (same != config.ports.end()) {
    if (same->second.ours) {
      placement.controllers = treeTo(config.machine, index);
    }
    const bool fits = same->second.address == live.address &&
                      same->second.ours == !placement.controllers.empty() &&
                      !config.usedBuses.contains(index);
    return fits ? std::optional(placement) : std::nullopt;
  }
  // Only the running domain has it, as part of our tree, which the configuration then gets, too.
  if (live.ours) {
    placement.controllers = treeTo(running.machine, index);
    const bool free =
        std::ranges::all_of(placement.controllers, [&config](const GuestController& each) {
          return !config.controllers.contains(each.index) &&
                 (each.address.bus != 0 || !config.usedPlaces.contains(each.address));
        });
    if (!placement.controllers.empty()) {
      return free ? std::optional(placement) : std::nullopt;
    }
  }
  // Only the running domain has it, as a flat port; usually vfpass has removed it from the
  // configuration.
  if (config.controllers.contains(index) || live.address.bus != 0 ||
      config.usedPlaces.contains(live.address)) {
    return std::nullopt;
  }
  placement.port = RootPort{index, live.address, live.multifunction};
  return placement;
}

std::vector<GuestPlacement> emptyPorts(const Occupancy& live, const Occupancy* config) {
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

std::vector<GuestPlacement> freeRootSlots(const Occupancy& live, const Occupancy* config) {
  std::vector<GuestPlacement> placements;
  for (const std::uint8_t slot : conventionalSlots) {
    const auto used = [slot](const Occupancy& occupancy) {
      return std::ranges::any_of(occupancy.usedPlaces, [slot](const PciAddress& place) {
        return place.bus == 0 && place.slot == slot;
      });
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
  return live.conventional ? freeRootSlots(live, config ? &*config : nullptr)
                           : emptyPorts(live, config ? &*config : nullptr);
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
