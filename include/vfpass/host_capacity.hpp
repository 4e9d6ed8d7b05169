#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass {

/// One memory BAR of a PCI function.
struct MemoryBar {
  std::uint64_t bytes = 0;
  bool wide = false;  ///< 64 bits: may be above 4 GiB if it is also prefetchable
  bool prefetchable = false;

  auto operator<=>(const MemoryBar&) const = default;
};

/// Reserved huge pages of one size on one NUMA node.
struct PagePool {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
};

struct NodeMemory {
  std::uint64_t bytes = 0;                  ///< 0: not observable
  std::map<std::uint64_t, PagePool> pages;  ///< by page size in bytes
};

/// Host resources for guests other than devices. Members are empty where not observable.
struct HostCapacity {
  unsigned addressBits = 0;  ///< physical address bits of the CPUs
  std::map<PciAddress, std::vector<MemoryBar>> bars;
  std::map<PciAddress, std::vector<MemoryBar>> vfBars;  ///< of one VF, by its PF
  std::map<int, NodeMemory> nodes;                      ///< NUMA nodes by number
};

}  // namespace vfpass
