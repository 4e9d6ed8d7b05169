// The `resource` file of a PCI function, and the files of sysfs that list CPUs or nodes.
// covers: src/host/inventory/read_inventory.cpp src/base/pci_files.cpp src/base/kernel_formats.cpp
// -formatNodeSet -isAssignment -kernelText -explainsNothing -configWord -findCapability
// -findExtendedCapability -findPciePackets -findSerialNumber -hasExtendedSpace -isDriverName
// -isVfioDriver -readInventory -addSerials -readPfIdentities -readPfList -addressesOf
// -managesNvlink -readOtherNics -readVfList -readAddressBits -readMemory -readPages -readCapacity
// -isMask -smallNumber -takeLine -readModel -readProcessors
#include "fuzz/target.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/inventory/read_inventory.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  constexpr std::size_t most = 6;
  for (const auto& bars :
       {inventory::memoryBars(input, 0, most), inventory::vfMemoryBars(input, 127)}) {
    require(bars.size() <= most, "a function has at most six BARs");
    for (const auto& bar : bars) {
      require(bar.bytes > 0, "a BAR has a size");
    }
  }
  parseNodeSet(input);
  const auto cpus = cpusInMask(input);
  require(cpus.empty() || *cpus.rbegin() <= 1023, "the number of a CPU has a limit");
}

}  // namespace vfpass::fuzz
