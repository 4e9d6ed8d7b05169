#include <algorithm>
#include <set>

#include "vfpass/error.hpp"
#include "vfpass/topology/nvlink_topology.hpp"
#include "vfpass/topology/propose_mapping.hpp"

namespace vfpass::topology {
namespace {

// The addresses of the partition's GPUs; empty if the fabric manager does not know all of them.
std::set<PciAddress> addressesOf(const FabricPartition& partition) {
  std::set<PciAddress> addresses;
  for (const PartitionGpu& gpu : partition.gpus) {
    if (!gpu.address) {
      return {};
    }
    addresses.insert(*gpu.address);
  }
  return addresses;
}

// The proposal that remains if the board has no other GPUs than these; nullopt: it has too few
// devices then.
std::optional<Proposal> proposeAmong(const Topology& topology, const std::vector<Lease>& leases,
                                     Wanted wanted, const std::set<PciAddress>& gpus) {
  for (const std::size_t number : nvlinkBoard(topology).gpus) {
    const PciAddress& address = topology.functions[number].address;
    if (!gpus.contains(address)) {
      wanted.unfit.push_back(address);
    }
  }
  try {
    return propose(topology, leases, wanted);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool fitsPartition(const Topology& topology, const std::vector<FabricPartition>& partitions,
                   const Proposal& proposal) {
  const auto gpus = partitionedGpus(topology, proposal);
  return !gpus.empty() &&
         judgePartition(partitions, gpus).outcome == PartitionJudgement::Outcome::fits;
}

}  // namespace

std::vector<PartitionedGpu> partitionedGpus(const Topology& topology, const Proposal& proposal) {
  std::vector<PartitionedGpu> gpus;
  if (proposal.nvlink == NvlinkMode::partition) {
    const auto board = nvlinkBoard(topology).gpus;
    for (const std::size_t gpu : proposal.gpus) {
      if (std::ranges::find(board, gpu) != board.end()) {
        gpus.push_back({topology.functions[gpu].address, std::nullopt});
      }
    }
  }
  return gpus;
}

Proposal proposePartition(const Topology& topology, const std::vector<Lease>& leases,
                          const Wanted& wanted, const std::vector<FabricPartition>& partitions,
                          const Proposal& proposal) {
  const auto gpus = partitionedGpus(topology, proposal);
  if (gpus.empty() || fitsPartition(topology, partitions, proposal)) {
    return proposal;
  }
  for (const FabricPartition& partition : partitions) {
    const auto addresses = addressesOf(partition);
    if (partition.active || addresses.size() != gpus.size()) {
      continue;
    }
    const auto other = proposeAmong(topology, leases, wanted, addresses);
    if (other && fitsPartition(topology, partitions, *other)) {
      return *other;
    }
  }
  return proposal;
}

}  // namespace vfpass::topology
