#include "expander_numbers.hpp"

#include <algorithm>
#include <string>

namespace vfpass::topology {
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
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& one, const Range& other) { return one.first < other.first; });
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

}  // namespace vfpass::topology
