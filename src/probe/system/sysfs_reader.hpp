#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass::probe {

/// Reads files below one directory, which is `/` outside tests. Text is trimmed and at most 4 KiB.
class SysfsReader {
 public:
  explicit SysfsReader(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// nullopt if it cannot be read.
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
  /// The same, but empty instead of nullopt.
  [[nodiscard]] std::string textOrEmpty(const std::string& path) const;
  /// Up to `limit` unmodified bytes; empty if they cannot be read.
  [[nodiscard]] std::string bytes(const std::string& path, std::size_t limit) const;
  /// Whether a file of any length contains `wanted`; nullopt if it cannot be read.
  [[nodiscard]] std::optional<bool> contains(const std::string& path,
                                             const std::string& wanted) const;
  /// Calls `use` with what each read(2) returns, which is one record of /dev/kmsg, until there is
  /// no more; at most 100000 times. False if the file cannot be read.
  [[nodiscard]] bool eachRecord(const std::string& path,
                                const std::function<void(std::string_view)>& use) const;
  /// Sorted names in a directory; empty if there is no such directory.
  [[nodiscard]] std::vector<std::string> names(const std::string& folder) const;
  /// Last component of a link's target; empty if it is not a link.
  [[nodiscard]] std::string linkName(const std::string& path) const;
  /// The path with all links resolved, below the root: `/sys/devices/...`.
  [[nodiscard]] std::string resolved(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;

 private:
  [[nodiscard]] std::filesystem::path at(const std::string& path) const;

  std::filesystem::path root_;
};

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
