#pragma once

#include <iosfwd>
#include <vector>

#include "vfpass/topology.hpp"

namespace vfpass::report {

/// A host device with its address in a guest.
struct GuestDevice {
  std::size_t function = 0;  ///< in Topology::functions: the VF, or its PF if the VF does not exist
  PciAddress address;        ///< in the guest
  int numaNode = -1;         ///< in the guest; -1: unknown
};

/// A file for NCCL_TOPO_FILE on the host: GPUs and NICs below their switches and NUMA nodes; NCCL
/// detects the rest. Throws Error if the file exceeds NCCL's limit of nodes.
void writeNcclTopology(std::ostream& out, const Topology& topology);

/// The same for a guest: its devices at their guest addresses, with the distances and link speeds
/// of the host, below switches that exist only in this file. A virtual switch reports 2.5 GT/s x1,
/// and NCCL believes it. The host's NUMA nodes get the guest's numbers, in order if the guest
/// reports none. Each node claims all CPUs; NCCL reduces that to the CPUs that a process may use.
void writeGuestNcclTopology(std::ostream& out, const Topology& topology,
                            const std::vector<GuestDevice>& devices);

}  // namespace vfpass::report
