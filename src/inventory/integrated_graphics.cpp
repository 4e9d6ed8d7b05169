#include "integrated_graphics.hpp"

#include <algorithm>

namespace vfpass::inventory {
namespace {

constexpr std::uint16_t intel = 0x8086;
constexpr std::uint16_t amdGraphics = 0x1002;
constexpr std::uint16_t amdProcessor = 0x1022;
constexpr unsigned displayBase = 0x03;
constexpr std::uint8_t intelGraphicsSlot = 2;
constexpr std::uint8_t earlyAmdSlot = 1;

bool sharesSlot(const TopologyFunction& one, const TopologyFunction& other) {
  PciAddress slot = other.address;
  slot.function = one.address.function;
  return slot == one.address;
}

bool isPartOfProcessor(const Topology& topology, const TopologyFunction& function) {
  if (function.classCode >> 16U != displayBase) {
    return false;  // an accelerator, even if it shares a package with a processor
  }
  if (function.vendor == intel) {
    return !function.parent && function.address.slot == intelGraphicsSlot;
  }
  if (function.vendor == amdGraphics && !function.parent && function.address.slot == earlyAmdSlot) {
    return true;
  }
  return function.vendor == amdGraphics &&
         std::ranges::any_of(topology.functions, [&](const TopologyFunction& other) {
           return other.vendor == amdProcessor && sharesSlot(function, other);
         });
}

}  // namespace

void dropIntegratedGraphics(Topology& topology) {
  for (TopologyFunction& function : topology.functions) {
    if (function.role == FunctionRole::gpu && isPartOfProcessor(topology, function)) {
      function.role = FunctionRole::other;
    }
  }
}

}  // namespace vfpass::inventory
