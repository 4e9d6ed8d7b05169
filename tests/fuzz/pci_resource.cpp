// The `resource` file of a PCI function, and the files of sysfs that list CPUs or nodes.
// covers: src/host/inventory/read_capacity.cpp src/base/pci_resource.cpp src/base/node_set.cpp
// -formatNodeSet
#include "fuzz/target.hpp"
#include "vfpass/base/node_set.hpp"
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
}

}  // namespace vfpass::fuzz
