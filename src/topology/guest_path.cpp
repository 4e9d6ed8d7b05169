#include <algorithm>

#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::topology {

std::vector<PciAddress> guestPath(const GuestMachine& machine, const PciAddress& place) {
  std::vector<PciAddress> upwards;
  PciAddress at = place;
  while (at.bus != 0) {
    const PciController* bridge = machine.controller(at.bus);
    if (bridge != nullptr && bridge->busNumber) {
      at.bus = static_cast<std::uint8_t>(*bridge->busNumber);
      break;
    }
    // A loop of controllers leads nowhere.
    if (bridge == nullptr || !bridge->address || upwards.size() > machine.controllers.size()) {
      return {};
    }
    upwards.push_back(at);
    at = *bridge->address;
  }
  upwards.push_back(at);
  std::reverse(upwards.begin(), upwards.end());
  return upwards;
}

}  // namespace vfpass::topology
