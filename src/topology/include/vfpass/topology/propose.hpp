#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/topology/rails.hpp"

namespace vfpass::topology {

/// A VF that a guest should get, and why from this PF.
struct ProposedVf {
  std::size_t pf = 0;
  std::optional<std::size_t> gpu;     ///< the one that it serves; none: the guest gets no GPU
  Distance distance = Distance::sys;  ///< between the two
  std::vector<std::size_t> alike;     ///< PFs that would have been as near
  std::size_t freeVfs = 0;            ///< of the PF, without this one's predecessors here
};

struct Proposal {
  std::vector<std::size_t> gpus;
  /// How the GPUs come by their NVLink; none: they are on no board with NVSwitches.
  std::optional<NvlinkMode> nvlink = {};
  std::vector<std::size_t> nvswitches = {};  ///< that the guest gets (NvlinkMode::all)
  std::vector<ProposedVf> vfs;
};

/// The best devices for one guest: GPUs that nobody has leased, with the nearest PFs that have VFs
/// to give, of one NUMA node as long as that has enough. Each GPU gets a VF in turn; a second one
/// comes from another PF that is as near, while there is one. GPUs of a board with NVSwitches get
/// all of the board or, where the host has a fabric manager's NVSwitches, a partition; otherwise
/// NVLink is disabled. Throws Error when the host has too little, and says what is left.
Proposal propose(const Topology& topology, const std::vector<Lease>& leases, std::size_t gpuCount,
                 std::size_t vfCount);

}  // namespace vfpass::topology
