#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/mac_guid_uuid.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass {

/// What kind of element a domain's XML has for a device of the host.
enum class HandMadeKind {
  hostdev,      ///< `<hostdev type='pci'>`
  interface,    ///< `<interface type='hostdev'>`
  fromNetwork,  ///< `<interface type='network'>`: the network chooses the device at the start
  nvmeDisk,     ///< `<disk type='nvme'>`
  mediated,     ///< `<hostdev type='mdev'>`
  otherBus,     ///< `<hostdev>` of another type (USB, SCSI), or an `<interface>` with a USB adapter
  capability,   ///< `<hostdev mode='capabilities'>`
  arguments     ///< `-device vfio-pci` in `<qemu:commandline>`
};

/// `<teaming>` of a device.
struct HandMadeTeaming {
  std::string type;        ///< `persistent`, `transient`
  std::string persistent;  ///< alias of the partner

  auto operator<=>(const HandMadeTeaming&) const = default;
};

/// A device of the host that somebody has put into a domain's XML, and what the XML says about it.
/// All texts are as in the XML: not printable.
struct HandMadeDevice {
  HandMadeKind kind = HandMadeKind::hostdev;
  std::string form;  ///< for messages: `<hostdev type='usb'>`
  std::string alias;
  std::optional<PciAddress> host;  ///< nullopt: it has none, or an invalid one
  bool managed = false;
  bool ours = false;    ///< has an alias of vfpass
  bool placed = false;  ///< has a PCI address in the guest, as everything that libvirt has defined
  std::optional<MacAddress> mac;
  std::optional<Vlan> vlan;
  std::string vlanFault;  ///< why `<vlan>` cannot be an entry's `vlan:`; empty if it can
  std::string driver;     ///< `<driver name=>`, or `model=` of libvirt 10; empty: the default
  std::optional<HandMadeTeaming> teaming;
  std::string network;  ///< of fromNetwork

  auto operator<=>(const HandMadeDevice&) const = default;
};

}  // namespace vfpass
