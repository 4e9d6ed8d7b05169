#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass {

/// One memory BAR of a PCI function.
struct MemoryBar {
  std::uint64_t bytes = 0;
  bool wide = false;  ///< 64 bits: may lie above 4 GiB, where it is prefetchable, too
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

/// What the host has for guests beside devices; members are empty where it cannot be seen.
struct HostCapacity {
  unsigned addressBits = 0;  ///< physical, of its CPUs
  std::map<PciAddress, std::vector<MemoryBar>> bars;
  std::map<PciAddress, std::vector<MemoryBar>> vfBars;  ///< of one VF, by its PF
  std::map<int, NodeMemory> nodes;                      ///< NUMA nodes by number
};

}  // namespace vfpass
