#include "vfpass/inventory.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<LinkLayer, 3> linkLayerNames{{{LinkLayer::unknown, "unknown"},
                                              {LinkLayer::ethernet, "ethernet"},
                                              {LinkLayer::infiniband, "infiniband"}}};

}  // namespace

std::string_view toString(LinkLayer layer) { return nameOf(linkLayerNames, layer); }

const PhysicalFunction* findPf(const Inventory& inventory, const PciAddress& address) {
  for (const auto& pf : inventory.pfs) {
    if (pf.address == address) {
      return &pf;
    }
  }
  return nullptr;
}

const PciFunction* findFunction(const Inventory& inventory, const PciAddress& address) {
  for (const auto& function : inventory.functions) {
    if (function.address == address) {
      return &function;
    }
  }
  return nullptr;
}

bool isBridge(const PciFunction& function) {
  return function.classCode >> 16U == 0x06U && !isNvSwitch(function.vendor, function.classCode);
}

bool isNvSwitch(std::uint16_t vendor, std::uint32_t classCode) {
  constexpr std::uint16_t nvidia = 0x10de;
  constexpr std::uint32_t otherBridge = 0x0680;
  return vendor == nvidia && classCode >> 8U == otherBridge;
}

}  // namespace vfpass
