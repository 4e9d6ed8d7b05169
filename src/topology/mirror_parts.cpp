#include "mirror_parts.hpp"

#include <algorithm>
#include <string>

#include "vfpass/base/text.hpp"

namespace vfpass::topology {
namespace {

constexpr unsigned highestIndex = 0xff;  // an address names its bus in eight bits
constexpr std::uint8_t slotsOfBus = 32;

}  // namespace

ControllerSet::ControllerSet(const GuestMachine& guest) : guest_(guest) {
  for (const PciController& controller : guest.controllers) {
    // Bridges of <qemu:commandline> are not controllers of the domain, and have higher numbers.
    if (controller.index <= highestIndex) {
      foreignIndexes_.insert(controller.index);
    }
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
  const bool samePlace = std::ranges::any_of(
      controllers_, [&place](const auto& other) { return other.second.address == place; });
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
  return std::ranges::all_of(children, [this](unsigned child) { return isUnused(child); });
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
  std::ranges::for_each(guest_.others, take);
  return used;
}

std::uint8_t ControllerSet::freeSlotOn(unsigned bus) const {
  auto used = usedSlotsOn(bus);
  for (const unsigned child : below(bus)) {
    used.insert(controllers_.at(child).address.slot);
  }
  if (bus == 0) {
    const auto* const slot = std::ranges::find_if(
        expressRootSlots, [&used](std::uint8_t each) { return !used.contains(each); });
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

namespace {

constexpr unsigned buses = 256;
// Spare numbers of a new expander bus, so that devices can be added without renumbering.
constexpr unsigned growth = 4;
constexpr unsigned granularity = 16;

// The number of an expander bus, and how many numbers it needs including its own.
struct Range {
  unsigned first = 0;
  unsigned needed = 0;
};

unsigned bridgesBelow(const ControllerSet& controllers, unsigned index) {
  unsigned count = 0;
  for (const unsigned child : controllers.below(index)) {
    count += 1 + bridgesBelow(controllers, child);
  }
  return count;
}

// Bridges below one of the domain's own controllers, by index. `depth` bounds the recursion,
// because a domain XML may contain loops.
unsigned foreignBridgesBelow(const GuestMachine& guest, unsigned index, unsigned depth = 0) {
  unsigned count = 0;
  for (const PciController& controller : guest.controllers) {
    const bool child = controller.index != 0 && controller.address &&
                       controller.address->bus == index && !controller.busNumber;
    if (child && depth < guest.controllers.size()) {
      count += 1 + foreignBridgesBelow(guest, controller.index, depth + 1);
    }
  }
  return count;
}

std::vector<Range> numberedRanges(const GuestMachine& guest, const ControllerSet& controllers) {
  std::vector<Range> ranges;
  for (const PciController& controller : guest.controllers) {
    if (controller.busNumber) {
      ranges.push_back({*controller.busNumber, 1 + foreignBridgesBelow(guest, controller.index)});
    }
  }
  for (const auto& [index, controller] : controllers.all()) {
    if (controller.model == ControllerModel::expanderBus && controller.busNumber != 0) {
      ranges.push_back({controller.busNumber, 1 + bridgesBelow(controllers, index)});
    }
  }
  std::ranges::sort(ranges, {}, &Range::first);
  return ranges;
}

std::vector<unsigned> unnumbered(const ControllerSet& controllers) {
  std::vector<unsigned> expanders;
  for (const auto& [index, controller] : controllers.all()) {
    if (controller.model == ControllerModel::expanderBus && controller.busNumber == 0) {
      expanders.push_back(index);
    }
  }
  return expanders;
}

unsigned neededOnRoot(const GuestMachine& guest, const ControllerSet& controllers) {
  unsigned count = 1 + foreignBridgesBelow(guest, 0);
  for (const unsigned child : controllers.below(0)) {
    if (controllers.all().at(child).model != ControllerModel::expanderBus) {
      count += 1 + bridgesBelow(controllers, child);
    }
  }
  return count;
}

void requireEnd(const Range& range, unsigned end) {
  if (range.first + range.needed > end) {
    throw NoRoom("the tree needs " + std::to_string(range.needed) + " bus numbers from " +
                 std::to_string(range.first) + " on, but only " +
                 std::to_string(end - std::min(end, range.first)) + " are free there");
  }
}

// `ranges` must be sorted by their first number.
void requireRanges(const std::vector<Range>& ranges, unsigned root) {
  Range before{0, root};
  for (const Range& range : ranges) {
    requireEnd(before, range.first);
    before = range;
  }
  requireEnd(before, buses);
}

unsigned withGrowth(unsigned needed) {
  return (needed + growth + granularity - 1) / granularity * granularity;
}

// New expander buses are numbered below the lowest existing one, in their own order and as high as
// they fit, because bridges that the domain adds to pcie-root count upwards from 0.
void assign(const std::vector<unsigned>& fresh, unsigned end, unsigned root,
            ControllerSet& controllers) {
  unsigned wide = 0;
  unsigned tight = 0;
  for (const unsigned index : fresh) {
    const unsigned needed = 1 + bridgesBelow(controllers, index);
    wide += withGrowth(needed);
    tight += needed;
  }
  const bool fitsWide = root + growth + wide <= end;
  if (!fitsWide && root + tight > end) {
    throw NoRoom("the tree needs " + std::to_string(root + tight) +
                 " bus numbers, but the guest has only " + std::to_string(end));
  }
  unsigned next = end - (fitsWide ? wide : tight);
  for (const unsigned index : fresh) {
    const unsigned needed = 1 + bridgesBelow(controllers, index);
    controllers.setBusNumber(index, next);
    next += fitsWide ? withGrowth(needed) : needed;
  }
}

}  // namespace

void numberExpanders(const GuestMachine& guest, ControllerSet& controllers) {
  const auto fresh = unnumbered(controllers);
  const auto ranges = numberedRanges(guest, controllers);
  const unsigned root = neededOnRoot(guest, controllers);
  if (!fresh.empty()) {
    assign(fresh, ranges.empty() ? buses : ranges.front().first, root, controllers);
  }
  if (!ranges.empty() || !fresh.empty()) {
    requireRanges(numberedRanges(guest, controllers), root);
  }
}

namespace {

const GuestCell* cellOfMemory(const GuestMachine& guest, int node) {
  const auto found = std::ranges::find_if(guest.cells, [node](const GuestCell& cell) {
    return cell.hostNodes.contains(static_cast<unsigned>(node));
  });
  return found == guest.cells.end() ? nullptr : &*found;
}

bool hasCell(const GuestMachine& guest, int id) {
  return std::ranges::any_of(
      guest.cells, [id](const GuestCell& cell) { return static_cast<int>(cell.id) == id; });
}

MirrorFault oneNodeGuest(const GuestMachine& guest, const std::set<int>& nodes) {
  return {"the devices of domain " + printable(guest.domain) + " sit on host NUMA nodes " +
              joinNumbers(nodes) + ", but the guest has " +
              (guest.cells.empty() ? "no NUMA cells" : "one NUMA cell for them"),
          "add one <cell> in <cpu><numa> for each of these nodes, with a <memnode> in "
          "<numatune> (`domain-settings: apply` in the mapping does this for a guest without "
          "cells); or use devices of one node; or set `topology: flat`"};
}

// Assigns cells to nodes without a memnode: by number if the guest has a cell of each number,
// otherwise by order.
void assignByNumber(const GuestMachine& guest, const std::set<int>& nodes, CellChoice& choice) {
  const bool byNumber =
      std::ranges::all_of(nodes, [&guest](int node) { return hasCell(guest, node); });
  auto cell = guest.cells.begin();
  std::vector<std::string> pairs;
  for (const int node : nodes) {
    const unsigned id = byNumber ? static_cast<unsigned>(node) : (cell++)->id;
    choice.cells[node] = id;
    pairs.push_back("cell " + std::to_string(id) + " for host node " + std::to_string(node));
  }
  choice.notes.push_back("no <memnode> of domain " + printable(guest.domain) +
                         " names the host node of its devices; vfpass uses " + join(pairs, ", "));
}

}  // namespace

CellChoice chooseCells(const GuestMachine& guest, const std::set<int>& hostNodes) {
  // Cells whose memory is on the devices' nodes.
  CellChoice choice;
  std::set<int> open;
  std::set<unsigned> used;
  for (const int node : hostNodes) {
    const GuestCell* cell = cellOfMemory(guest, node);
    if (cell == nullptr) {
      open.insert(node);
    } else {
      choice.cells[node] = cell->id;
      used.insert(cell->id);
    }
  }
  // Devices of different nodes need different cells.
  const bool enough = guest.cells.size() >= hostNodes.size();
  const bool distinct = used.size() == choice.cells.size();
  if (hostNodes.size() > 1 && (!enough || !distinct)) {
    choice.faults.push_back(oneNodeGuest(guest, hostNodes));
    return choice;
  }
  if (open.empty() || guest.cells.empty()) {
    return choice;
  }
  // Without any `<memnode>` the numbers decide; beside others, a missing one is a mistake.
  if (!used.empty()) {
    choice.faults.push_back({"domain " + printable(guest.domain) +
                                 " has <memnode> elements, but none for host NUMA node " +
                                 joinNumbers(open) + " of its devices",
                             "add a <memnode> for it in <numatune>, or set `topology: flat`"});
    return choice;
  }
  assignByNumber(guest, open, choice);
  return choice;
}

}  // namespace vfpass::topology
