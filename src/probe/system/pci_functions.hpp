#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/sysfs_reader.hpp"

namespace vfpass::probe {

/// One PCI function as the guest sees it.
struct PciFunction {
  std::string address;  ///< `0000:05:00.0`
  std::uint32_t deviceClass = 0;
  std::uint32_t vendor = 0;
  std::uint32_t device = 0;
  std::string driver;  ///< empty: none
  std::string path;    ///< its place in the tree, below /sys/devices
  int numaNode = -1;
  std::vector<std::uint64_t> bars;  ///< sizes in bytes by BAR number; 0 if unused
  std::string config;               ///< configuration space, as far as it is readable

  [[nodiscard]] bool isBridge() const { return deviceClass >> 16U == 0x06; }
  [[nodiscard]] bool isNetwork() const { return deviceClass >> 16U == 0x02; }
  [[nodiscard]] bool isGpu() const { return deviceClass >> 16U == 0x03 && vendor == 0x10de; }
};

std::vector<PciFunction> readPciFunctions(const SysfsReader& sysfs);

/// Extended capabilities (PCI Express Base Specification, chapter 7).
constexpr std::uint16_t accessControlServices = 0x000d;
constexpr std::uint16_t addressTranslationServices = 0x000f;

/// Offset of an extended capability; 0 if the function has none, nullopt if its extended space
/// cannot be read: without root, or if the guest's machine type has no such space.
std::optional<std::size_t> extendedCapability(std::string_view config, std::uint16_t wanted);

/// 16 bits of the configuration space; 0 beyond its end.
std::uint16_t configWord(std::string_view config, std::size_t offset);

/// Distance of two functions in NCCL's terms: PIX (one switch between them), PXB (several bridges),
/// PHB (the host bridge), SYS (another NUMA node). Paths as in PciFunction.
std::string pciDistance(const PciFunction& first, const PciFunction& second);

}  // namespace vfpass::probe
