#pragma once

#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// The guest's PCI tree as its kernel will number it: firmware gives bus numbers depth first, by
/// slot and function, from 0 on below pcie-root and from an expander bus's own number on below that
/// (SeaBIOS's pci_bios_init_bus_rec; edk2's PciBusDxe does the same). Bridges and passed devices
/// only. A device keeps its host function's role, class, links and identity, and its
/// TopologyFunction::entry names the mapping's entry. A VF that the host has not made yet is shown
/// as its PF. Node numbers are those of guest cells, which become Processors::nodes.
Topology guestTopology(const GuestMachine& machine, const Topology& host);

/// Where a device is in the guest, in the guest's own bus numbers; `place` as in GuestMachine.
/// nullopt when no controller leads there.
std::optional<PciAddress> guestAddress(const GuestMachine& machine, const PciAddress& place);

/// The way to a device from its root bus down: the place of each bridge, then the device's own.
/// Slots and functions hold whatever the firmware; of the bus numbers only the first does
/// (pcie-root's and expander buses' numbers belong to the machine). Look such a path up in what the
/// guest shows. Empty when no controller leads there.
std::vector<PciAddress> guestPath(const GuestMachine& machine, const PciAddress& place);

/// The machine with these devices and the controllers that their placements name.
struct PlacedDevice {
  std::string name;
  PciAddress host;
  GuestPlacement placement;
};
GuestMachine withPlacements(GuestMachine machine, const std::vector<PlacedDevice>& devices);

}  // namespace vfpass::topology
