#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"

namespace vfpass::topology {

/// The guest has no room for another controller of the tree.
class NoRoom : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The controllers of a mirrored tree while it is being made, and what the domain's own devices
/// leave free. A bus is named by the index of the controller it belongs to, as in libvirt.
class ControllerSet {
 public:
  /// `guest` has nothing of ours.
  explicit ControllerSet(const GuestMachine& guest);

  /// Takes over a controller of an earlier tree, parents first. False, with nothing taken, when it
  /// contradicts what is there already or the domain's own devices.
  bool adopt(const GuestController& controller);

  /// Adds a controller at the lowest free slot of the parent's bus, with the lowest free index
  /// above the parent's: QEMU makes controllers in the order of their indices. Throws NoRoom.
  unsigned add(ControllerModel model, unsigned parent, bool hotplug = true);
  void setNode(unsigned expander, unsigned cell);
  void setBusNumber(unsigned expander, unsigned number);

  /// A device of ours sits at slot 0 behind this port.
  void occupy(unsigned port) { occupied_.insert(port); }

  /// Nothing sits behind it, and it is there to have something behind it.
  [[nodiscard]] bool isFreePort(unsigned index) const;
  [[nodiscard]] const std::map<unsigned, GuestController>& all() const { return controllers_; }
  [[nodiscard]] std::vector<unsigned> below(unsigned parent) const;
  /// From the one on or next to the root bus down to this one.
  [[nodiscard]] std::vector<unsigned> pathTo(unsigned index) const;
  /// The host bridge above: an expander bus, or 0.
  [[nodiscard]] unsigned rootOf(unsigned index) const;
  /// The upstream port of the switch that this downstream port belongs to.
  [[nodiscard]] std::optional<unsigned> switchOf(unsigned port) const;
  /// The upstream port nearest to the root on the way to this port.
  [[nodiscard]] std::optional<unsigned> outermostSwitchOf(unsigned port) const;
  /// Nothing of anybody sits anywhere below it.
  [[nodiscard]] bool isUnused(unsigned index) const;

  /// Drops the controllers that nothing needs: neither a device behind them, nor one of `spare`,
  /// nor the rule that indices have no gaps.
  void dropUnneeded(const std::set<unsigned>& spare);

 private:
  [[nodiscard]] unsigned freeIndexAbove(unsigned parent) const;
  [[nodiscard]] std::uint8_t freeSlotOn(unsigned bus) const;
  [[nodiscard]] std::set<std::uint8_t> usedSlotsOn(unsigned bus) const;

  const GuestMachine& guest_;
  std::set<unsigned> foreignIndexes_;
  std::set<unsigned> foreignBuses_;  ///< buses that a device of somebody else sits on
  std::map<unsigned, GuestController> controllers_;
  std::set<unsigned> occupied_;
};

}  // namespace vfpass::topology
