#include <algorithm>
#include <optional>
#include <vector>

#include "attach_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::plan {
namespace {

using Fit = topology::PartitionJudgement::Outcome;

std::vector<topology::PartitionedGpu> partitionGpus(const AttachInput& input) {
  return topology::withRecordedModules(
      topology::judgeNvlink(input.topology, input.mapping).partition, input.leases);
}

// nullopt: the fabric manager is needed to tell.
std::optional<topology::PartitionJudgement> chosenPartition(const AttachInput& input) {
  const auto gpus = partitionGpus(input);
  if (gpus.empty()) {
    return std::nullopt;
  }
  return input.partitions ? topology::judgePartition(*input.partitions, gpus)
                          : topology::judgeRepeatedModules(gpus);
}

// By GPU, in the order of the mapping; empty unless all are known.
std::vector<topology::PartitionedGpu> modulesToRecord(const AttachInput& input) {
  auto gpus = partitionGpus(input);
  if (const auto judgement = chosenPartition(input)) {
    if (!judgement->partition) {
      return {};
    }
    for (std::size_t at = 0; at < gpus.size(); ++at) {
      gpus[at].module = judgement->modules.at(at);
    }
    return gpus;
  }
  // A fabric manager that does not answer now leaves what the mapping states, and otherwise what an
  // earlier attach has recorded.
  for (topology::PartitionedGpu& gpu : gpus) {
    gpu.module = gpu.module ? gpu.module : gpu.recorded;
  }
  const bool known = std::ranges::all_of(
      gpus, [](const topology::PartitionedGpu& gpu) { return gpu.module.has_value(); });
  return input.fabricClient && known ? gpus : std::vector<topology::PartitionedGpu>{};
}

}  // namespace

void checkPartition(const AttachInput& input, std::vector<Objection>& objections) {
  const auto judgement = chosenPartition(input);
  if (!judgement || judgement->outcome != Fit::none) {
    return;
  }
  const auto entry = std::ranges::find(input.mapping.functions,
                                       partitionGpus(input).front().address, &MappedFunction::pci);
  objections.push_back({toString(entry->place) + ": " + entry->name + ": " + judgement->summary,
                        judgement->remedy, ExitCode::badInput});
}

void recordModules(const AttachInput& input, std::vector<Lease>& leases) {
  for (const topology::PartitionedGpu& gpu : modulesToRecord(input)) {
    const auto lease = std::ranges::find(leases, gpu.address, &Lease::device);
    if (lease != leases.end()) {
      std::get<LeasedFunction>(lease->part).nvlinkModule = gpu.module;
    }
  }
}

std::string partitionNote(const AttachInput& input) {
  constexpr const char* byHand = "activate their partition before each start: fmpm -l, fmpm -a ID";
  if (partitionGpus(input).empty()) {
    return {};
  }
  const auto judgement = chosenPartition(input);
  if (!judgement) {
    return input.partitionProblem.empty()   ? ""
           : modulesToRecord(input).empty() ? "NVLink: " + input.partitionProblem + "; " + byHand
                                            : "NVLink: " + input.partitionProblem;
  }
  return judgement->outcome == Fit::fits
             ? "NVLink: " + judgement->summary +
                   "; each start activates it, each stop deactivates it"
             : "NVLink: " + judgement->summary + "; " + judgement->remedy;
}

}  // namespace vfpass::plan
