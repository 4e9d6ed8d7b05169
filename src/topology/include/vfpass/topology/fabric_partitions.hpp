#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/fabric_partition.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::topology {

/// A GPU of a guest.
struct PartitionedGpu {
  PciAddress address;
  std::optional<unsigned> module =
      {};  ///< by the mapping; empty: the fabric manager's list may tell
  std::optional<unsigned> recorded = {};  ///< by its lease, where neither of them tells
};

/// The GPUs with the modules that their leases have recorded: the fabric manager no longer knows
/// the address of a GPU that is bound for its guest.
std::vector<PartitionedGpu> withRecordedModules(std::vector<PartitionedGpu> gpus,
                                                const std::vector<Lease>& leases);

/// Which partition a guest's GPUs get.
struct PartitionJudgement {
  enum class Outcome {
    fits,     ///< a partition holds exactly these GPUs
    blocked,  ///< the same, but another one that is active has some of them
    none,     ///< no partition can hold exactly these GPUs
    unknown   ///< which GPUs these are on the board is not known
  };
  Outcome outcome = Outcome::unknown;
  std::optional<FabricPartition> partition;  ///< fits, blocked
  std::string summary;                       ///< one line, with the reason unless it fits
  std::string remedy;                        ///< empty if it fits
  std::vector<unsigned> modules = {};        ///< fits, blocked: of the GPUs, in their order
};

/// Outcome::none if two of the GPUs have the same module by mapping and leases, otherwise nullopt.
/// For a fabric manager that does not answer.
std::optional<PartitionJudgement> judgeRepeatedModules(const std::vector<PartitionedGpu>& gpus);

/// `partitions`: as the fabric manager lists them. `gpus`: those of the board, at least one.
PartitionJudgement judgePartition(const std::vector<FabricPartition>& partitions,
                                  const std::vector<PartitionedGpu>& gpus);

}  // namespace vfpass::topology
