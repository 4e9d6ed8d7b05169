#pragma once

#include <compare>
#include <optional>
#include <set>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass {

/// A GPU of a partition. The module ID is that of its place on the board, which the fabric manager
/// calls its physical ID; it does not follow the order of PCI addresses.
struct PartitionGpu {
  unsigned module = 0;
  /// nullopt: the fabric manager cannot see it. It finds the GPUs through the NVSwitches, and reads
  /// addresses only of GPUs that NVIDIA's driver of its own host has.
  std::optional<PciAddress> address;

  auto operator<=>(const PartitionGpu&) const = default;
};

/// A set of GPUs for which a fabric manager can connect the NVLinks (shared NVSwitch
/// virtualization). The board determines which ones there are; of those that share a GPU, one can
/// be active at a time.
struct FabricPartition {
  unsigned id = 0;
  bool active = false;
  std::vector<PartitionGpu> gpus;

  auto operator<=>(const FabricPartition&) const = default;
};

std::set<unsigned> modulesOf(const FabricPartition& partition);

/// The partition that holds exactly these modules; nullptr: none.
const FabricPartition* findPartition(const std::vector<FabricPartition>& partitions,
                                     const std::set<unsigned>& modules);

/// An active partition that shares a GPU with this one, which is not active; nullptr: none.
const FabricPartition* activeOverlap(const std::vector<FabricPartition>& partitions,
                                     const FabricPartition& wanted);

}  // namespace vfpass
