#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/lease.hpp"
#include "vfpass/topology/fabric_partitions.hpp"
#include "vfpass/topology/nearest_pf.hpp"

namespace vfpass::topology {

/// A VF proposed for a guest, with the reasons for its PF.
struct ProposedVf {
  std::size_t pf = 0;
  std::optional<std::size_t> gpu;     ///< the GPU that it serves; nullopt: the guest gets no GPU
  Distance distance = Distance::sys;  ///< between the two
  std::vector<std::size_t> alike;     ///< other equally near PFs
  std::size_t freeVfs = 0;            ///< of the PF, before this one was taken
};

struct Proposal {
  std::vector<std::size_t> gpus;
  /// How NVLink is set up; nullopt: the GPUs are on no board with NVSwitches.
  std::optional<NvlinkMode> nvlink = {};
  std::vector<std::size_t> nvswitches = {};      ///< passed to the guest (NvlinkMode::all)
  std::vector<std::size_t> nvlinkManagers = {};  ///< the same, of a board since Blackwell
  std::vector<ProposedVf> vfs;
};

/// What a guest should get.
struct Wanted {
  std::size_t gpus = 0;
  std::size_t vfs = 0;
  bool infiniband = false;             ///< only of InfiniBand PFs
  std::vector<PciAddress> unfit = {};  ///< devices that are not proposed, leased or not
};

/// The best devices for one guest: GPUs that are not leased, with the nearest PFs that have free
/// VFs, from one NUMA node if that has enough. Each GPU gets a VF in turn; a second one comes from
/// another equally near PF, if there is one. All PFs are of one vendor and link type, those that
/// are nearest as a whole. GPUs of a board with NVSwitches get all of the board
/// or, where drivers on the host serve a fabric manager, a partition; otherwise NVLink is
/// disabled. Throws Error with the free numbers when the host has too few, or with the reasons why
/// it can have none.
Proposal propose(const Topology& topology, const std::vector<Lease>& leases, const Wanted& wanted);

/// `proposal`, or one like it whose GPUs are exactly those of an inactive partition, if no
/// partition holds the GPUs of `proposal` or another one blocks it; one that can be activated now
/// comes first. Unchanged unless it has `nvlink: partition`.
Proposal proposePartition(const Topology& topology, const std::vector<Lease>& leases,
                          const Wanted& wanted, const std::vector<FabricPartition>& partitions,
                          const Proposal& proposal);

/// The GPUs of a proposal with `nvlink: partition`, for judgePartition(); otherwise none.
std::vector<PartitionedGpu> partitionedGpus(const Topology& topology, const Proposal& proposal);

/// Numbers of GPUs next to the proposed one with which a partition would keep NVLink; empty: it is
/// kept, or no partition is possible.
std::vector<std::size_t> nvlinkPartitionsNear(const Topology& topology, const Proposal& proposal);

}  // namespace vfpass::topology
