#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace vfpass {

/// The settings in a domain's XML that determine how much memory VFIO pins.
struct GuestMemory {
  std::string domain;                      ///< its name
  std::uint64_t bytes = 0;                 ///< `<memory>`
  std::optional<std::uint64_t> hardLimit;  ///< `<hard_limit>`, in bytes
  bool viommu = false;                     ///< `<iommu>`: each device then maps all of it
  std::size_t devices = 0;                 ///< number of host PCI devices
};

}  // namespace vfpass
