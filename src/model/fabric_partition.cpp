#include "vfpass/fabric_partition.hpp"

#include <algorithm>

namespace vfpass {

std::set<unsigned> modulesOf(const FabricPartition& partition) {
  std::set<unsigned> modules;
  for (const PartitionGpu& gpu : partition.gpus) {
    modules.insert(gpu.module);
  }
  return modules;
}

const FabricPartition* findPartition(const std::vector<FabricPartition>& partitions,
                                     const std::set<unsigned>& modules) {
  const auto found = std::ranges::find_if(
      partitions, [&](const FabricPartition& each) { return modulesOf(each) == modules; });
  return found == partitions.end() ? nullptr : &*found;
}

const FabricPartition* activeOverlap(const std::vector<FabricPartition>& partitions,
                                     const FabricPartition& wanted) {
  const auto modules = modulesOf(wanted);
  const auto other = std::ranges::find_if(partitions, [&](const FabricPartition& each) {
    return each.active && each.id != wanted.id &&
           std::ranges::any_of(
               each.gpus, [&](const PartitionGpu& gpu) { return modules.contains(gpu.module); });
  });
  return wanted.active || other == partitions.end() ? nullptr : &*other;
}

}  // namespace vfpass
