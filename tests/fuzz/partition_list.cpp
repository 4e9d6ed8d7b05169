// The output of `fmpm -l`, from NVIDIA's client of the fabric manager or a script in its place, and
// of `nv-fabricmanager --version`.
// covers: src/host/fabric/fabric_manager.cpp -findFmpm -readPartitions -PartitionChange
// -moduleNumbers -activatePartition -setPartition
#include <set>

#include "fuzz/target.hpp"
#include "vfpass/host/fabric_manager.hpp"

namespace vfpass::fuzz {

void runTarget(std::string_view input) {
  requirePrintable(host::fabricManagerVersion(input));
  const auto partitions = accepted([&] { return host::parsePartitions(input); });
  if (!partitions) {
    return;
  }
  std::set<unsigned> numbers;
  std::set<unsigned> active;
  for (const FabricPartition& partition : *partitions) {
    require(numbers.insert(partition.id).second, "a number names one partition");
    require(!partition.gpus.empty(), "a partition has a GPU");
    std::set<unsigned> modules;
    for (const PartitionGpu& gpu : partition.gpus) {
      require(modules.insert(gpu.module).second, "a partition lists a GPU once");
      require(!partition.active || active.insert(gpu.module).second,
              "no two active partitions share a GPU");
    }
  }
}

}  // namespace vfpass::fuzz
