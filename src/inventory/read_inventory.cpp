#include "vfpass/inventory/read_inventory.hpp"

#include "model_names.hpp"
#include "vfpass/host/system_kernel.hpp"

namespace vfpass::inventory {

Inventory readInventory(const std::filesystem::path& root,
                        const std::vector<PciAddress>& functions) {
  return readInventory(host::Root(root), functions);
}

Inventory readInventory(host::Root root, const std::vector<PciAddress>& functions) {
  host::SystemKernel kernel(std::move(root));
  Inventory inventory;
  inventory.pfs = kernel.readPfs();
  inventory.unsafeInterrupts = kernel.unsafeInterrupts();
  inventory.iommuPresent = kernel.iommuPresent();
  ModelNames names;
  for (PhysicalFunction& pf : inventory.pfs) {
    pf.model = names.find(pf.vendor, pf.device);
  }
  for (const PciAddress& address : functions) {
    if (auto function = kernel.readFunction(address)) {
      function->model = names.find(function->vendor, function->device);
      inventory.functions.push_back(std::move(*function));
    }
  }
  return inventory;
}

}  // namespace vfpass::inventory
