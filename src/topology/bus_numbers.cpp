#include "bus_numbers.hpp"

#include <vector>

namespace vfpass::topology {
namespace {

constexpr std::string_view expanderModel = "pcie-expander-bus";
constexpr std::string_view conventionalExpander = "pci-expander-bus";

using Children = std::map<unsigned, std::map<PciAddress, unsigned>>;  // by parent, then by place

bool isExpander(const PciController& controller) {
  return controller.model == expanderModel || controller.model == conventionalExpander;
}

Children childrenOf(const GuestMachine& machine) {
  Children children;
  for (const PciController& controller : machine.controllers) {
    if (controller.index != 0 && controller.address && !isExpander(controller)) {
      children[controller.address->bus][*controller.address] = controller.index;
    }
  }
  return children;
}

// `next`: the lowest free number. Each index is visited once, so that the recursion ends even if a
// domain XML's controllers form a loop.
void number(const Children& children, unsigned index, unsigned& next,
            std::map<unsigned, unsigned>& numbers) {
  if (!numbers.emplace(index, next).second) {
    return;
  }
  ++next;
  const auto below = children.find(index);
  if (below == children.end()) {
    return;
  }
  for (const auto& [place, child] : below->second) {
    number(children, child, next, numbers);
  }
}

}  // namespace

std::map<unsigned, unsigned> busNumbersOf(const GuestMachine& machine) {
  const Children children = childrenOf(machine);
  std::map<unsigned, unsigned> numbers;
  unsigned next = 0;
  number(children, 0, next, numbers);
  for (const PciController& controller : machine.controllers) {
    if (isExpander(controller) && controller.busNumber) {
      next = *controller.busNumber;
      number(children, controller.index, next, numbers);
    }
  }
  return numbers;
}

}  // namespace vfpass::topology
