#include "controller_set.hpp"

#include <algorithm>

namespace vfpass::topology {
namespace {

constexpr unsigned highestIndex = 0xff;  // an address names its bus in eight bits
constexpr std::uint8_t slotsOfBus = 32;

}  // namespace

ControllerSet::ControllerSet(const GuestMachine& guest) : guest_(guest) {
  for (const PciController& controller : guest.controllers) {
    foreignIndexes_.insert(controller.index);
    if (controller.address) {
      foreignBuses_.insert(controller.address->bus);
    }
  }
  for (const PassedDevice& device : guest.passed) {
    foreignBuses_.insert(device.place.bus);
  }
  for (const PciAddress& place : guest.others) {
    foreignBuses_.insert(place.bus);
  }
}

bool ControllerSet::adopt(const GuestController& controller) {
  const auto known = controllers_.find(controller.index);
  if (known != controllers_.end()) {
    return known->second == controller;
  }
  const PciAddress& place = controller.address;
  const bool samePlace =
      std::any_of(controllers_.begin(), controllers_.end(),
                  [&place](const auto& other) { return other.second.address == place; });
  const bool hasParent = place.bus == 0 || controllers_.contains(place.bus);
  const bool fits = !foreignIndexes_.contains(controller.index) && !samePlace && hasParent &&
                    controller.index > place.bus && controller.index <= highestIndex &&
                    !usedSlotsOn(place.bus).contains(place.slot);
  if (fits) {
    controllers_[controller.index] = controller;
  }
  return fits;
}

unsigned ControllerSet::add(ControllerModel model, unsigned parent, bool hotplug) {
  GuestController controller;
  controller.model = model;
  controller.index = freeIndexAbove(parent);
  controller.address = {0, static_cast<std::uint8_t>(parent), freeSlotOn(parent), 0};
  controller.hotplug = hotplug;
  controllers_[controller.index] = controller;
  return controller.index;
}

void ControllerSet::setNode(unsigned expander, unsigned cell) {
  controllers_.at(expander).node = cell;
}

void ControllerSet::setBusNumber(unsigned expander, unsigned number) {
  controllers_.at(expander).busNumber = number;
}

bool ControllerSet::isFreePort(unsigned index) const {
  const auto found = controllers_.find(index);
  return found != controllers_.end() && found->second.hotplug && !occupied_.contains(index) &&
         !foreignBuses_.contains(index) && below(index).empty() &&
         (found->second.model == ControllerModel::rootPort ||
          found->second.model == ControllerModel::downstreamPort);
}

std::vector<unsigned> ControllerSet::below(unsigned parent) const {
  std::vector<unsigned> children;
  for (const auto& [index, controller] : controllers_) {
    if (controller.address.bus == parent) {
      children.push_back(index);
    }
  }
  return children;
}

std::vector<unsigned> ControllerSet::pathTo(unsigned index) const {
  std::vector<unsigned> path;
  for (auto at = controllers_.find(index); at != controllers_.end();
       at = controllers_.find(at->second.address.bus)) {
    path.push_back(at->first);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

unsigned ControllerSet::rootOf(unsigned index) const {
  const auto path = pathTo(index);
  const bool expander =
      !path.empty() && controllers_.at(path.front()).model == ControllerModel::expanderBus;
  return expander ? path.front() : 0;
}

std::optional<unsigned> ControllerSet::switchOf(unsigned port) const {
  const auto found = controllers_.find(port);
  const bool downstream =
      found != controllers_.end() && found->second.model == ControllerModel::downstreamPort;
  return downstream ? std::optional<unsigned>(found->second.address.bus) : std::nullopt;
}

std::optional<unsigned> ControllerSet::outermostSwitchOf(unsigned port) const {
  for (const unsigned index : pathTo(port)) {
    if (controllers_.at(index).model == ControllerModel::upstreamPort) {
      return index;
    }
  }
  return std::nullopt;
}

bool ControllerSet::isUnused(unsigned index) const {
  if (occupied_.contains(index) || foreignBuses_.contains(index)) {
    return false;
  }
  const auto children = below(index);
  return std::all_of(children.begin(), children.end(),
                     [this](unsigned child) { return isUnused(child); });
}

void ControllerSet::dropUnneeded(const std::set<unsigned>& spare) {
  std::set<unsigned> needed;
  for (const auto& [index, controller] : controllers_) {
    if (!isUnused(index) || spare.contains(index)) {
      const auto path = pathTo(index);
      needed.insert(path.begin(), path.end());
    }
  }
  unsigned highest = foreignIndexes_.empty() ? 0 : *foreignIndexes_.rbegin();
  highest = needed.empty() ? highest : std::max(highest, *needed.rbegin());
  // If no controller is needed, the whole tree is removed, as by a detach.
  std::erase_if(controllers_, [&](const auto& each) {
    return needed.empty() || (each.first > highest && !needed.contains(each.first));
  });
}

unsigned ControllerSet::freeIndexAbove(unsigned parent) const {
  for (unsigned index = parent + 1; index <= highestIndex; ++index) {
    if (!foreignIndexes_.contains(index) && !controllers_.contains(index) &&
        !foreignBuses_.contains(index)) {
      return index;
    }
  }
  throw NoRoom("libvirt supports at most 255 PCI controllers");
}

std::set<std::uint8_t> ControllerSet::usedSlotsOn(unsigned bus) const {
  std::set<std::uint8_t> used;
  const auto take = [&](const PciAddress& place) {
    if (place.bus == bus) {
      used.insert(place.slot);
    }
  };
  for (const PciController& controller : guest_.controllers) {
    if (controller.address) {
      take(*controller.address);
    }
  }
  for (const PassedDevice& device : guest_.passed) {
    take(device.place);
  }
  std::for_each(guest_.others.begin(), guest_.others.end(), take);
  return used;
}

std::uint8_t ControllerSet::freeSlotOn(unsigned bus) const {
  auto used = usedSlotsOn(bus);
  for (const unsigned child : below(bus)) {
    used.insert(controllers_.at(child).address.slot);
  }
  if (bus == 0) {
    const auto* const slot =
        std::find_if(expressRootSlots.begin(), expressRootSlots.end(),
                     [&used](std::uint8_t each) { return !used.contains(each); });
    if (slot == expressRootSlots.end()) {
      throw NoRoom("the guest's root bus has no free slot");
    }
    return *slot;
  }
  // Below a root or downstream port there is one slot.
  const auto parent = controllers_.find(bus);
  const bool port =
      parent != controllers_.end() && (parent->second.model == ControllerModel::rootPort ||
                                       parent->second.model == ControllerModel::downstreamPort);
  for (std::uint8_t slot = 0; slot < (port ? 1 : slotsOfBus); ++slot) {
    if (!used.contains(slot)) {
      return slot;
    }
  }
  throw NoRoom("a bus of the mirrored tree has no free slot: it has at most 32 ports");
}

}  // namespace vfpass::topology
