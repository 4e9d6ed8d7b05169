#include "guest_ports.hpp"

#include <set>

#include "our_elements.hpp"
#include "pci_attributes.hpp"

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

}  // namespace

std::vector<pugi::xml_node> portsInForeignUse(const Document& document) {
  const auto buses = busesOfOthers(document);
  const auto used = [&buses](pugi::xml_node port) {
    const auto index = controllerIndex(port);
    return index && buses.contains(*index);
  };
  std::set<PciAddress> leaders;
  for (const auto port : ourDevices(document)) {
    auto address = guestAddressOf(port);
    if (isPciController(port) && used(port) && address) {
      address->function = 0;
      leaders.insert(*address);
    }
  }
  std::vector<pugi::xml_node> kept;
  for (const auto port : ourDevices(document)) {
    const auto address = guestAddressOf(port);
    if (isPciController(port) && (used(port) || (address && leaders.contains(*address)))) {
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

}  // namespace vfpass::domain
