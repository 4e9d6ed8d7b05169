#include "world/simulated_fabric.hpp"

#include <algorithm>
#include <cerrno>

#include "vfpass/base/text.hpp"

namespace vfpass::crash {
namespace {

std::string listedGpu(const PartitionGpu& gpu) {
  return R"({"pciBusId": "00000000:00:00.0", "physicalId": )" + std::to_string(gpu.module) +
         R"(, "uuid": ""})";
}

std::string listedPartition(const FabricPartition& partition) {
  std::vector<std::string> gpus;
  for (const PartitionGpu& gpu : partition.gpus) {
    gpus.push_back(listedGpu(gpu));
  }
  return R"({"partitionId": )" + std::to_string(partition.id) + R"(, "isActive": )" +
         (partition.active ? "1" : "0") + R"(, "numGpus": )" + std::to_string(gpus.size()) +
         R"(, "gpuInfo": [)" + join(gpus, ", ") + "]}";
}

}  // namespace

Message SimulatedFabric::change(const Message& request) {
  const bool activates = request.at(1) == "-a";
  const auto wanted = std::ranges::find_if(partitions, [&](const FabricPartition& each) {
    return std::to_string(each.id) == request.at(2);
  });
  if (wanted == partitions.end() || refuses) {
    return {std::to_string(EINVAL)};
  }
  if (activates && activeOverlap(partitions, *wanted) != nullptr) {
    return {std::to_string(EBUSY)};
  }
  wanted->active = activates;
  return {"0"};
}

std::string SimulatedFabric::list() const {
  std::vector<std::string> listed;
  for (const FabricPartition& partition : partitions) {
    listed.push_back(listedPartition(partition));
  }
  return R"({"partitionInfo": [)" + join(listed, ",\n") + "]}\n";
}

std::vector<unsigned> SimulatedFabric::active() const {
  std::vector<unsigned> numbers;
  for (const FabricPartition& partition : partitions) {
    if (partition.active) {
      numbers.push_back(partition.id);
    }
  }
  return numbers;
}

void SimulatedFabric::reboot() {
  for (FabricPartition& partition : partitions) {
    partition.active = false;
  }
}

}  // namespace vfpass::crash
