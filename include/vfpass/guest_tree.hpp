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

/// PCI controllers of libvirt's `<controller type='pci'>` that the mirrored tree is made of.
enum class ControllerModel {
  expanderBus,    ///< pcie-expander-bus: a host bridge of its own, which can have a NUMA node
  rootPort,       ///< pcie-root-port
  upstreamPort,   ///< pcie-switch-upstream-port: a switch's end towards the host bridge
  downstreamPort  ///< pcie-switch-downstream-port
};

/// libvirt's word: `pcie-root-port`, ...
std::string_view toString(ControllerModel model);
std::optional<ControllerModel> parseControllerModel(std::string_view model);

/// One controller that vfpass adds to a guest. Its chassis number is the index; its port number is
/// the slot of its address, of a root port slot * 8 + function (libvirt's own choice, too).
struct GuestController {
  ControllerModel model = ControllerModel::rootPort;
  unsigned index = 0;  ///< libvirt's; what sits behind it has this `bus` in its address
  PciAddress address;  ///< where the controller itself sits; `bus` is its parent's index
  /// Of an expander bus: the guest cell that it belongs to. Only there libvirt takes one.
  std::optional<unsigned> node;
  /// Of an expander bus: the number of its root bus as the guest counts buses, 1 to 254.
  unsigned busNumber = 0;
  /// False for a port that leads to a switch below an expander bus: firmware then reserves no
  /// window for plugging.
  bool hotplug = true;

  auto operator<=>(const GuestController&) const = default;
};

/// A virtual NUMA node of the guest (`<cpu><numa><cell>`).
struct GuestCell {
  unsigned id = 0;
  std::set<unsigned> hostNodes;  ///< where its memory lies (`<memnode>`); empty: not said

  auto operator<=>(const GuestCell&) const = default;
};

/// A PCI controller as a domain's XML has it.
struct PciController {
  unsigned index = 0;
  std::string model;                  ///< libvirt's word, any of them; empty: none
  std::optional<PciAddress> address;  ///< none: the root, or libvirt has not placed it yet
  std::optional<unsigned> node;
  std::optional<unsigned> busNumber;
  std::optional<unsigned> chassis;
  bool hotplug = true;
  std::string ourAlias;  ///< its alias where vfpass added it; empty: somebody else did

  auto operator<=>(const PciController&) const = default;
};

/// A host's PCI function where the guest sees it.
struct PassedDevice {
  PciAddress host;
  PciAddress place;  ///< in the guest; `bus` is the index of the controller it sits behind
  std::string name;  ///< of the mapping's entry; empty: not a device of ours

  auto operator<=>(const PassedDevice&) const = default;
};

/// Slots of a q35 guest's root bus in the order in which vfpass takes them. Left out is what the
/// machine puts there without an `<address>` (0 the host bridge, 1f LPC, SATA and SMBus) and slot
/// 1, which libvirt keeps for the first graphics card. 1a, 1b and 1d, where libvirt puts ICH9 USB
/// and sound by habit, come last.
inline constexpr std::array<std::uint8_t, 29> expressRootSlots{
    0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10,
    0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1c, 0x1e, 0x1a, 0x1b, 0x1d};

/// What a domain's XML says about the guest's PCI buses and NUMA nodes.
struct GuestMachine {
  std::string domain;   ///< its name, for messages
  std::string machine;  ///< `pc-q35-7.2`
  std::vector<GuestCell> cells;
  std::vector<PciController> controllers;  ///< by index
  std::vector<PassedDevice> passed;
  std::set<PciAddress> others;  ///< places of all other devices, by controller index, too

  /// Has a pcie-root (q35, virt): only there a PCI Express tree can grow.
  [[nodiscard]] bool pciExpress() const;
  [[nodiscard]] const PciController* controller(unsigned index) const;
};

}  // namespace vfpass
