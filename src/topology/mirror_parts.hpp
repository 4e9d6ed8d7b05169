#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/topology/mirror.hpp"

namespace vfpass::topology {

/// The guest has no room for another controller of the tree.
class NoRoom : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The controllers of a mirrored tree under construction, and the slots that the domain's own
/// devices leave free. A bus is named by the index of the controller it belongs to, as in libvirt.
class ControllerSet {
 public:
  /// `guest`: the domain without devices and controllers of vfpass.
  explicit ControllerSet(const GuestMachine& guest);

  /// Adds a controller of an earlier tree; parents must come first. Returns false and changes
  /// nothing if it conflicts with a controller of this set or with the domain's own devices.
  bool adopt(const GuestController& controller);

  /// Adds a controller at the lowest free slot of the parent's bus, with the lowest free index
  /// above the parent's, because QEMU creates controllers in the order of their indices. Throws
  /// NoRoom.
  unsigned add(ControllerModel model, unsigned parent, bool hotplug = true);
  void setNode(unsigned expander, unsigned cell);
  void setBusNumber(unsigned expander, unsigned number);

  /// Marks that a device of vfpass is at slot 0 behind this port.
  void occupy(unsigned port) { occupied_.insert(port); }

  /// True for a hotplug-capable root or downstream port with nothing behind it.
  [[nodiscard]] bool isFreePort(unsigned index) const;
  [[nodiscard]] const std::map<unsigned, GuestController>& all() const { return controllers_; }
  [[nodiscard]] std::vector<unsigned> below(unsigned parent) const;
  /// The controllers from the root bus down to this one.
  [[nodiscard]] std::vector<unsigned> pathTo(unsigned index) const;
  /// The host bridge above: an expander bus, or 0.
  [[nodiscard]] unsigned rootOf(unsigned index) const;
  /// The upstream port of the switch that this downstream port belongs to.
  [[nodiscard]] std::optional<unsigned> switchOf(unsigned port) const;
  /// The upstream port nearest to the root on the path to this port.
  [[nodiscard]] std::optional<unsigned> outermostSwitchOf(unsigned port) const;
  /// True when there is no device below it.
  [[nodiscard]] bool isUnused(unsigned index) const;

  /// Removes the controllers that are not needed: those with no device behind them, except the ones
  /// in `spare` and the ones that keep the indices free of gaps.
  void dropUnneeded(const std::set<unsigned>& spare);

 private:
  [[nodiscard]] unsigned freeIndexAbove(unsigned parent) const;
  [[nodiscard]] std::uint8_t freeSlotOn(unsigned bus) const;
  [[nodiscard]] std::set<std::uint8_t> usedSlotsOn(unsigned bus) const;

  const GuestMachine& guest_;
  std::set<unsigned> foreignIndexes_;
  std::set<unsigned> foreignBuses_;  ///< buses with devices of the domain's own
  std::map<unsigned, GuestController> controllers_;
  std::set<unsigned> occupied_;
};

/// Assigns a bus number to each expander bus without one, so that all bridges below it get numbers
/// lower than the next expander bus's, and all bridges below pcie-root numbers lower than the first
/// one's. libvirt and QEMU check neither, and firmware silently loses devices otherwise. Existing
/// numbers stay. Throws NoRoom when an existing number leaves too few for the bridges now below it,
/// or when there are not enough numbers.
void numberExpanders(const GuestMachine& guest, ControllerSet& controllers);

/// The guest cell for each host NUMA node.
struct CellChoice {
  std::map<int, unsigned> cells;  ///< by host node; a node without a cell is not in it
  std::vector<std::string> notes;
  std::vector<MirrorFault> faults;
};

/// Chooses cells for the host nodes of the devices. A cell whose `<memnode>` names the node takes
/// precedence, because its memory is local to the device. Without memnodes, cells are matched to
/// nodes by number, or by order where the host's numbers have gaps (AMD NPS4: 1, 3, 5, 7), with a
/// note. Faults: two nodes, but no cells, or one cell for both.
CellChoice chooseCells(const GuestMachine& guest, const std::set<int>& hostNodes);

}  // namespace vfpass::topology
