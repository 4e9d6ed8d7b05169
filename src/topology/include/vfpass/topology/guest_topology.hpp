#pragma once

#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// The guest's PCI tree as its kernel will number it: firmware assigns bus numbers depth first, by
/// slot and function, starting at 0 below pcie-root and at an expander bus's own number below that
/// (SeaBIOS's pci_bios_init_bus_rec; edk2's PciBusDxe does the same). Contains only bridges and
/// passed devices. A device keeps its host function's role, class, links and identity, and its
/// Device::entry names the mapping's entry. A VF that does not exist on the host yet is
/// shown as its PF. Node numbers are those of guest cells, which become Processors::nodes.
Topology guestTopology(const GuestMachine& machine, const Topology& host);

/// The address of a device in the guest's own bus numbers; `place` as in GuestMachine. nullopt if
/// no controller leads there.
std::optional<PciAddress> guestAddress(const GuestMachine& machine, const PciAddress& place);

/// The path from its root bus down to a device: the place of each bridge, then the device's own.
/// Slots and functions are valid with any firmware; of the bus numbers only the first is
/// (pcie-root's and expander buses' numbers belong to the machine). Compare such a path with the
/// one that the guest reports. Empty if no controller leads there.
std::vector<PciAddress> guestPath(const GuestMachine& machine, const PciAddress& place);

/// The mapping's entries whose devices are directly below a switch, in their order in the machine.
std::vector<std::string> entriesBehindSwitches(const GuestMachine& machine);

/// The machine with these devices and the controllers that their placements name.
struct PlacedDevice {
  std::string name;
  PciAddress host;
  GuestPlacement placement;
};
GuestMachine withPlacements(GuestMachine machine, const std::vector<PlacedDevice>& devices);

}  // namespace vfpass::topology
