#pragma once

#include <iosfwd>
#include <vector>

#include "vfpass/topology.hpp"

namespace vfpass::report {

/// A device of the host that a guest sees at an address of its own.
struct GuestDevice {
  std::size_t function = 0;  ///< in Topology::functions: the VF, its PF where the VF is not there
  PciAddress address;        ///< in the guest
  int numaNode = -1;         ///< in the guest, where its tree shows one
};

/// A file for NCCL_TOPO_FILE on the host: GPUs and NICs below their switches and NUMA nodes, with
/// everything else for NCCL to find out. Throws Error when it would have more nodes than NCCL
/// reads.
void writeNcclTopology(std::ostream& out, const Topology& topology);

/// The same for a guest: its devices at its addresses, at the distances that they have on the host,
/// below switches that exist in this file only, with the host's link speeds: a virtual switch shows
/// 2.5 GT/s x1, and NCCL believes it. The host's NUMA nodes get the guest's numbers, in order where
/// the guest shows none, and each says that every CPU is near: NCCL cuts that down to those that a
/// process may use.
void writeGuestNcclTopology(std::ostream& out, const Topology& topology,
                            const std::vector<GuestDevice>& devices);

}  // namespace vfpass::report
