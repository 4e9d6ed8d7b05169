#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass {

/// Models of libvirt's `<controller type='pci'>` that make up the mirrored tree.
enum class ControllerModel {
  expanderBus,    ///< pcie-expander-bus: an additional host bridge, which can have a NUMA node
  rootPort,       ///< pcie-root-port
  upstreamPort,   ///< pcie-switch-upstream-port: a switch's end towards the host bridge
  downstreamPort  ///< pcie-switch-downstream-port
};

/// libvirt's name: `pcie-root-port`, ...
std::string_view toString(ControllerModel model);
std::optional<ControllerModel> parseControllerModel(std::string_view model);

/// One controller that vfpass adds to a guest. Its chassis number is the index. Its port number is
/// the slot of its address, or slot * 8 + function for a root port (as libvirt chooses it).
struct GuestController {
  ControllerModel model = ControllerModel::rootPort;
  unsigned index = 0;  ///< libvirt's; devices behind it have this `bus` in their address
  PciAddress address;  ///< of the controller itself; `bus` is its parent's index
  /// Guest cell of an expander bus; libvirt accepts one on no other controller.
  std::optional<unsigned> node;
  /// Bus number of an expander bus's root bus in the guest, 1 to 254.
  unsigned busNumber = 0;
  /// False for a port that leads to a switch below an expander bus: firmware then reserves no
  /// hotplug window.
  bool hotplug = true;

  auto operator<=>(const GuestController&) const = default;
};

/// A virtual NUMA node of the guest (`<cpu><numa><cell>`).
struct GuestCell {
  unsigned id = 0;
  std::set<unsigned> hostNodes;  ///< host nodes of its memory (`<memnode>`); empty: unspecified

  auto operator<=>(const GuestCell&) const = default;
};

/// A PCI controller in a domain's XML.
struct PciController {
  unsigned index = 0;
  std::string model;                  ///< any of libvirt's models; empty: none
  std::optional<PciAddress> address;  ///< nullopt: the root, or not yet placed by libvirt
  std::optional<unsigned> node;
  std::optional<unsigned> busNumber;
  std::optional<unsigned> chassis;
  bool hotplug = true;
  std::string ourAlias;  ///< its alias if vfpass added it; empty otherwise

  auto operator<=>(const PciController&) const = default;
};

/// A host PCI function and its location in the guest.
struct PassedDevice {
  PciAddress host;
  PciAddress place;  ///< in the guest; `bus` is the index of the controller above it
  std::string name;  ///< name of the mapping's entry; empty: vfpass did not attach the device

  auto operator<=>(const PassedDevice&) const = default;
};

/// Slots of a q35 guest's root bus in the order in which vfpass uses them. Excluded are the slots
/// that the machine occupies without an `<address>` (0: host bridge; 1f: LPC, SATA and SMBus) and
/// slot 1, which libvirt reserves for the first graphics card. 1a, 1b and 1d, where libvirt usually
/// puts ICH9 USB and sound, come last.
inline constexpr std::array<std::uint8_t, 29> expressRootSlots{
    0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10,
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1c, 0x1e, 0x1a, 0x1b, 0x1d};

/// The guest's PCI buses and NUMA nodes according to a domain's XML.
struct GuestMachine {
  std::string domain;   ///< its name, for messages
  std::string machine;  ///< `pc-q35-7.2`
  std::vector<GuestCell> cells;
  std::vector<PciController> controllers;  ///< by index
  std::vector<PassedDevice> passed;
  std::set<PciAddress> others;  ///< addresses of all other devices; `bus`: the controller's index

  /// Has a pcie-root (q35, virt), which a PCI Express tree requires.
  [[nodiscard]] bool pciExpress() const;
  [[nodiscard]] const PciController* controller(unsigned index) const;
};

}  // namespace vfpass
