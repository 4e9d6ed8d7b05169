#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vfpass/topology.hpp"

namespace vfpass::report {

/// One `<pci>` element.
struct NcclDevice {
  PciAddress address;
  std::uint32_t classCode = 0;
  PcieLink link;
  /// Vendor, device and subsystem IDs, by which NCCL recognizes the nested switches of a PEX chip.
  std::vector<std::pair<std::string, std::uint16_t>> identity;
  std::vector<NcclDevice> below;
};

/// One `<cpu>` element.
struct NcclCpu {
  int node = 0;
  std::string affinity;
  std::vector<NcclDevice> below;
};

/// NCCL has its own parser, which requires exactly this format: no prolog, no tabs, single spaces,
/// one line per tag. Throws Error if the file exceeds NCCL's limit of nodes.
void writeNcclFile(std::ostream& out, const Processors& processors,
                   const std::vector<NcclCpu>& cpus);

}  // namespace vfpass::report
