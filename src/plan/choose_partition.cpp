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
  return topology::judgeNvlink(input.topology, input.mapping).partition;
}

// The module that this domain's lease of the GPU has recorded.
std::optional<unsigned> recordedModule(const AttachInput& input, const PciAddress& gpu) {
  for (const Lease& lease : input.leases) {
    if (lease.domain == input.domain && lease.device == gpu) {
      return nvlinkModuleOf(lease);
    }
  }
  return std::nullopt;
}

std::vector<topology::PartitionedGpu> withRecordedModules(
    const AttachInput& input, std::vector<topology::PartitionedGpu> gpus) {
  for (topology::PartitionedGpu& gpu : gpus) {
    gpu.module = gpu.module ? gpu.module : recordedModule(input, gpu.address);
  }
  return gpus;
}

// The fabric manager no longer knows the address of a GPU that is bound for its guest.
std::optional<topology::PartitionJudgement> chosenPartition(const AttachInput& input) {
  const auto gpus = partitionGpus(input);
  if (gpus.empty() || !input.partitions) {
    return std::nullopt;
  }
  auto judgement = topology::judgePartition(*input.partitions, gpus);
  return judgement.outcome == Fit::unknown
             ? topology::judgePartition(*input.partitions, withRecordedModules(input, gpus))
             : judgement;
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
  // A fabric manager that does not answer now leaves what an earlier attach has recorded.
  for (topology::PartitionedGpu& gpu : gpus) {
    gpu.module = recordedModule(input, gpu.address);
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
