#include "read_pci_function.hpp"

#include <algorithm>
#include <array>

#include "vfpass/pci_address.hpp"

namespace vfpass::inventory {
namespace {

// Base classes and subclasses of the PCI Code and ID Assignment Specification.
constexpr unsigned networkBase = 0x02;
constexpr unsigned displayBase = 0x03;
constexpr unsigned acceleratorBase = 0x12;
constexpr unsigned display3d = 0x0302;
constexpr std::uint8_t intelGraphicsSlot = 2;
constexpr std::uint8_t earlyAmdSlot = 1;

// Vendors of GPUs that compute. A board's management controller is a VGA display as well, most
// often of ASPEED or Matrox, on old boards of ATI: ES1000 and RN50.
bool isOfGpuVendor(const Device& function) {
  constexpr std::array<std::uint16_t, 3> vendors{nvidia, amdGraphics, intel};
  constexpr std::array<std::uint16_t, 2> onBoards{0x515e, 0x5969};
  const bool onBoard = function.vendor == amdGraphics &&
                       std::ranges::find(onBoards, function.device) != onBoards.end();
  return std::ranges::find(vendors, function.vendor) != vendors.end() && !onBoard;
}

FunctionRole bridgeRole(const std::optional<PortType>& port) {
  if (!port) {
    return FunctionRole::bridge;
  }
  switch (*port) {
    case PortType::rootPort:
      return FunctionRole::rootPort;
    case PortType::upstreamPort:
      return FunctionRole::upstreamPort;
    case PortType::downstreamPort:
      return FunctionRole::downstreamPort;
    default:
      return FunctionRole::bridge;
  }
}

bool sharesSlot(const Device& one, const Device& other) {
  PciAddress slot = other.address;
  slot.function = one.address.function;
  return slot == one.address;
}

bool isPartOfProcessor(const Topology& topology, const Device& function) {
  if (function.classCode >> 16U != displayBase) {
    // Intel's NPU on the root bus. Any other accelerator is a GPU, even if it shares a package with
    // a processor.
    return function.vendor == intel && !function.parent;
  }
  if (function.vendor == intel) {
    return !function.parent && function.address.slot == intelGraphicsSlot;
  }
  if (function.vendor == amdGraphics && !function.parent && function.address.slot == earlyAmdSlot) {
    return true;
  }
  return function.vendor == amdGraphics &&
         std::ranges::any_of(topology.functions, [&](const Device& other) {
           return other.vendor == amdProcessor && sharesSlot(function, other);
         });
}

}  // namespace

FunctionRole roleOf(const Device& function, const std::optional<PortType>& port) {
  const unsigned base = function.classCode >> 16U;
  const unsigned subclass = function.classCode >> 8U;
  if (isPciBridge(function.classCode)) {
    return bridgeRole(port);
  }
  if (isNvSwitch(function)) {
    return FunctionRole::nvswitch;
  }
  const bool display = base == displayBase || base == acceleratorBase;
  if (display && (subclass == display3d || isOfGpuVendor(function))) {
    return FunctionRole::gpu;
  }
  return base == networkBase || function.driver == "mlx5_core" ? FunctionRole::nic
                                                               : FunctionRole::other;
}

// A bridge on the root bus is a root port. Below a root port or a downstream port it is a switch's
// upstream port, and below an upstream port it is a downstream port.
void guessPorts(Topology& topology) {
  std::vector<std::size_t> order(topology.functions.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return topology.functions[one].path.size() < topology.functions[other].path.size();
  });
  for (const std::size_t i : order) {  // a parent's path is shorter than its children's
    Device& function = topology.functions[i];
    const FunctionRole above =
        function.parent ? topology.functions[*function.parent].role : FunctionRole::other;
    if (function.role == FunctionRole::rootPort && above == FunctionRole::upstreamPort) {
      function.role = FunctionRole::downstreamPort;
    }
    if (function.role != FunctionRole::bridge) {
      continue;
    }
    if (!function.parent) {
      function.role = FunctionRole::rootPort;
    } else if (above == FunctionRole::upstreamPort) {
      function.role = FunctionRole::downstreamPort;
    } else if (above == FunctionRole::rootPort || above == FunctionRole::downstreamPort) {
      function.role = FunctionRole::upstreamPort;
    }
  }
}

void dropIntegratedGraphics(Topology& topology) {
  for (Device& function : topology.functions) {
    if (function.role == FunctionRole::gpu && isPartOfProcessor(topology, function)) {
      function.role = FunctionRole::other;
    }
  }
}

}  // namespace vfpass::inventory
