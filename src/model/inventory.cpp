#include "vfpass/inventory.hpp"

namespace vfpass {

const PhysicalFunction* findPf(const Inventory& inventory, const PciAddress& address) {
  for (const auto& pf : inventory.pfs) {
    if (pf.address == address) {
      return &pf;
    }
  }
  return nullptr;
}

const Device* findFunction(const Inventory& inventory, const PciAddress& address) {
  for (const auto& function : inventory.functions) {
    if (function.address == address) {
      return &function;
    }
  }
  return nullptr;
}

}  // namespace vfpass
