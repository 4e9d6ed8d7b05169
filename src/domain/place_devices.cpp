#include <array>
#include <set>

#include "bad_xml.hpp"
#include "our_elements.hpp"
#include "pci_attributes.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/guest_tree.hpp"

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

void readController(pugi::xml_node device, GuestBus& bus) {
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
      readController(device, bus);
    }
    const auto address = guestAddressOf(device);
    if (address && address->bus == 0) {
      bus.usedSlots.insert(address->slot);
    } else if (address) {
      bus.usedIndexes.insert(address->bus);
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

}  // namespace vfpass::domain
