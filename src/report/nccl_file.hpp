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
  /// vendor, device and their subsystem's; NCCL knows the nested switches of a PEX chip by them.
  std::vector<std::pair<std::string, std::uint16_t>> identity;
  std::vector<NcclDevice> below;
};

/// One `<cpu>` element.
struct NcclCpu {
  int node = 0;
  std::string affinity;
  std::vector<NcclDevice> below;
};

/// NCCL has a parser of its own, and it wants the file exactly so: no prolog, no tabs, single
/// spaces, a tag on one line. Throws Error when there are more nodes than it reads.
void writeNcclFile(std::ostream& out, const Processors& processors,
                   const std::vector<NcclCpu>& cpus);

}  // namespace vfpass::report
