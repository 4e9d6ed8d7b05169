#include "vfpass/inventory/read_inventory.hpp"

#include <algorithm>

#include "vfpass/host/system_kernel.hpp"

namespace vfpass::inventory {

Inventory readInventory(const std::filesystem::path& root,
                        const std::vector<PciAddress>& functions) {
  return readInventory(host::Root(root), functions);
}

Inventory readInventory(host::Root root, const std::vector<PciAddress>& functions,
                        host::Serials serials) {
  host::SystemKernel kernel(std::move(root));
  Inventory inventory;
  inventory.pfs = kernel.readPfs(serials);
  inventory.unsafeInterrupts = kernel.unsafeInterrupts();
  inventory.iommuPresent = kernel.iommuPresent();
  for (const PciAddress& address : functions) {
    if (auto function = kernel.readFunction(address)) {
      inventory.functions.push_back(std::move(*function));
    }
  }
  return inventory;
}

void addSerials(const host::Root& root, const std::vector<PciAddress>& pfs, Inventory& inventory) {
  for (PhysicalFunction& pf : inventory.pfs) {
    if (pf.serial.empty() && std::ranges::find(pfs, pf.address) != pfs.end()) {
      pf.serial = host::readSerial(root, pf.address);
    }
  }
}

Inventory readPfIdentities(host::Root root, host::Serials serials) {
  Inventory inventory;
  inventory.pfs = host::SystemKernel(std::move(root)).readPfIdentities(serials);
  return inventory;
}

Inventory readPfList(host::Root root) {
  host::SystemKernel kernel(std::move(root));
  Inventory inventory;
  inventory.unsafeInterrupts = kernel.unsafeInterrupts();
  inventory.iommuPresent = kernel.iommuPresent();
  inventory.pfs = kernel.readPfIdentities();
  for (PhysicalFunction& pf : inventory.pfs) {
    for (const auto& [index, address] : kernel.vfAddresses(pf.address)) {
      pf.vfs.push_back({});
      pf.vfs.back().index = index;
      pf.vfs.back().address = address;
    }
  }
  return inventory;
}

Inventory readVfList(host::Root root, host::Serials serials) {
  Inventory inventory;
  inventory.pfs = host::SystemKernel(std::move(root)).readVfTable(serials);
  return inventory;
}

}  // namespace vfpass::inventory
