// The `vpd` file of a PCI function: bytes from the card's flash.
// covers: src/host/sysfs/device_identity.cpp -copyFields -readVpdGuarded -readVpd -readSerial
// -copyConfig -readConfig -hexWord -idsOf -numberOf -nameOfFunction -readIdentity
// -functionsWithIdentities
#include "vfpass/host/device_identity.hpp"

#include <algorithm>
#include <string>

#include "fuzz/target.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  constexpr std::size_t limit = 4096;
  const host::VitalProductData data = host::findVpd([&](std::size_t offset, std::size_t length) {
    require(offset + length <= limit, "nothing after the limit is read");
    return std::string(input.substr(std::min(offset, input.size()), length));
  });
  requirePrintable(data.serial);
  requirePrintable(data.subModel);
  requirePrintable(data.card);
  require(!host::managesNvlink(data, mellanox) || !host::managesNvlink(data, 0),
          "only one vendor's devices manage NVLink");
  require(trim(data.serial) == data.serial, "a serial number has no space around it");
}

}  // namespace vfpass::fuzz
