// Configuration space of a PCI function, which a VF or an emulated device can define.
// covers: src/base/pci_files.cpp src/host/inventory/read_pci_function.cpp -resourceIn
// -readPciResources -isDriverName -isVfioDriver -isOfGpuVendor -bridgeRole -sharesSlot
// -isPartOfProcessor -roleOf -guessPorts -dropIntegratedGraphics -Reader -word -stateIn
// -thousandfold -readPort -readRdma -readPorts -identifier -takeIdentifiers -readUevent -readLink
// -readPcie -readFacts
#include "read_pci_function.hpp"

#include <string>

#include "fuzz/target.hpp"
#include "vfpass/base/pci_files.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  const std::string serial = findSerialNumber(input);
  requirePrintable(serial);
  require(serial.empty() || hasExtendedSpace(input), "a serial number is in the extended space");
  if (const auto packets = findPciePackets(input)) {
    require(packets->payload >= 128 && packets->readRequest <= 4096,
            "a packet is as large as the register can say");
  }
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
