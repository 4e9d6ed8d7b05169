#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "system/sysfs_reader.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::probe {

/// One base address register, with the one above it if it is 64 bits wide.
struct PciBar {
  std::size_t number = 0;
  std::uint64_t bytes = 0;  ///< 0: the kernel dropped it, because it found no space for it
  bool assigned = false;    ///< has an address
};

/// One PCI function as the guest sees it.
struct PciFunction {
  std::string address;  ///< `0000:05:00.0`
  std::uint32_t deviceClass = 0;
  std::uint32_t vendor = 0;
  std::uint32_t device = 0;
  std::string driver;  ///< empty: none
  std::string path;    ///< its place in the tree, below /sys/devices
  int numaNode = -1;
  std::vector<PciBar> bars;  ///< the used ones
  std::string config;        ///< configuration space, as far as it is readable

  [[nodiscard]] bool isNetwork() const { return deviceClass >> 16U == 0x02; }
  [[nodiscard]] bool isGpu() const { return deviceClass >> 16U == 0x03 && vendor == nvidia; }
};

std::vector<PciFunction> readPciFunctions(const SysfsReader& sysfs);

/// Distance of two functions in NCCL's terms: PIX (one switch between them), PXB (several bridges),
/// PHB (the host bridge), SYS (another NUMA node). Paths as in PciFunction.
std::string pciDistance(const PciFunction& first, const PciFunction& second);

}  // namespace vfpass::probe
