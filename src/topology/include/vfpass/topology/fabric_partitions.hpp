#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/fabric_partition.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass::topology {

/// A GPU of a guest.
struct PartitionedGpu {
  PciAddress address;
  std::optional<unsigned> module =
      {};  ///< by the mapping; empty: the fabric manager's list may tell
};

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

/// `partitions`: as the fabric manager lists them. `gpus`: those of the board, at least one.
PartitionJudgement judgePartition(const std::vector<FabricPartition>& partitions,
                                  const std::vector<PartitionedGpu>& gpus);

}  // namespace vfpass::topology
