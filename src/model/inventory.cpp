#include "vfpass/inventory.hpp"

#include <algorithm>

#include "vfpass/lease.hpp"

namespace vfpass {

const PhysicalFunction* findPf(const Inventory& inventory, const PciAddress& address) {
  for (const auto& pf : inventory.pfs) {
    if (pf.address == address) {
      return &pf;
    }
  }
  return nullptr;
}

const PhysicalFunction* findPf(const Inventory& inventory, const Lease& lease) {
  return isVf(lease) ? findPf(inventory, lease.pf) : nullptr;
}

const VirtualFunction* findVf(const Inventory& inventory, const Lease& lease) {
  const PhysicalFunction* pf = findPf(inventory, lease);
  return pf != nullptr && vfOf(lease).index < pf->vfs.size() ? &pf->vfs[vfOf(lease).index]
                                                             : nullptr;
}

const Device* findFunction(const Inventory& inventory, const PciAddress& address) {
  for (const auto& function : inventory.functions) {
    if (function.address == address) {
      return &function;
    }
  }
  return nullptr;
}

bool savesNone(const MigratableVfs& found) {
  return !found.empty() &&
         std::ranges::none_of(found, [](const auto& vf) { return vf.second.has_value(); });
}

void noteMigratable(PhysicalFunction& pf, const MigratableVfs& found) {
  pf.savesNoVfs = savesNone(found);
  for (VirtualFunction& vf : pf.vfs) {
    const auto at = found.find(vf.index);
    vf.migratable = at == found.end() ? std::nullopt : at->second;
  }
}

}  // namespace vfpass
