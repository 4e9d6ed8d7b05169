// Configuration space of a PCI function, which a VF or an emulated device can define.
// covers: src/base/pci_files.cpp src/host/inventory/read_pci_function.cpp -resourceIn
// -readPciResources -isDriverName -isVfioDriver -isOfGpuVendor -bridgeRole -sharesSlot
// -isPartOfProcessor -roleOf -guessPorts -dropIntegratedGraphics
#include "read_pci_function.hpp"

#include <string>

#include "fuzz/target.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const auto found = inventory::findPcieCapability(input);
  if (!found) {
    return;
  }
  for (const auto& link : {found->link, found->best}) {
    require(link.speed <= 64000 && link.width <= 63, "a link is as fast as the register can say");
  }
  const auto longer = inventory::findPcieCapability(std::string(input) + std::string(64, '\xff'));
  require(longer && longer->type == found->type && longer->link == found->link &&
              longer->best == found->best,
          "bytes after the capability do not change it");
}

}  // namespace vfpass::fuzz
