#include "vfpass/topology/fabric_partitions.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/topology/nvlink_topology.hpp"
#include "vfpass/topology/propose_mapping.hpp"

namespace vfpass::topology {
namespace {

using Fit = PartitionJudgement::Outcome;

// `0000:1b:00.0, module 2`
std::string gpusOf(const FabricPartition& partition) {
  std::vector<std::string> names;
  for (const PartitionGpu& gpu : partition.gpus) {
    names.push_back(gpu.address ? toString(*gpu.address) : "module " + std::to_string(gpu.module));
  }
  return join(names, ", ");
}

std::string nameOfPartition(const FabricPartition& partition) {
  return "partition " + std::to_string(partition.id) + " (" + gpusOf(partition) + ")";
}

// On an HGX A100 NVML's module ID can be another one than the fabric manager's (documentation of
// dra-driver-nvidia-gpu, "Fabric Manager partitioning").
std::string moduleRemedy() {
  return "while NVIDIA's driver has a GPU, `fmpm -l` shows its number (physicalId) beside its "
         "address (pciBusId); the Module Id of `nvidia-smi -q` can differ from it on HGX A100";
}

PartitionJudgement judgeRepeated(unsigned module) {
  return {Fit::none,
          {},
          "two GPUs of the mapping have the module ID " + std::to_string(module),
          "correct `nvlink-module` in the mapping: " + moduleRemedy()};
}

class PartitionJudge {
 public:
  PartitionJudge(const std::vector<FabricPartition>& partitions,
                 const std::vector<PartitionedGpu>& gpus)
      : partitions_(partitions), gpus_(gpus) {
    for (const FabricPartition& partition : partitions) {
      for (const PartitionGpu& gpu : partition.gpus) {
        if (gpu.address) {
          addresses_[gpu.module] = *gpu.address;
          listed_[*gpu.address] = gpu.module;
        }
      }
    }
  }

  PartitionJudgement judge() {
    std::set<unsigned> modules;
    std::vector<std::string> unknown;
    for (const PartitionedGpu& gpu : gpus_) {
      if (const std::string wrong = contradiction(gpu); !wrong.empty()) {
        return {Fit::none, {}, wrong, "correct `nvlink-module` in the mapping: " + moduleRemedy()};
      }
      const auto module = moduleOf(gpu);
      if (!module) {
        unknown.push_back(toString(gpu.address));
      } else if (!modules.insert(*module).second) {
        return judgeRepeated(*module);
      }
    }
    if (!unknown.empty()) {
      return judgeUnknown(unknown);
    }
    PartitionJudgement result = judgeModules(modules);
    if (result.partition) {
      for (const PartitionedGpu& gpu : gpus_) {
        result.modules.push_back(*moduleOf(gpu));
      }
    }
    return result;
  }

 private:
  [[nodiscard]] std::optional<unsigned> moduleOf(const PartitionedGpu& gpu) const {
    const auto found = listed_.find(gpu.address);
    return gpu.module               ? gpu.module
           : found != listed_.end() ? std::optional(found->second)
                                    : gpu.recorded;
  }

  // What the fabric manager says of the GPU against what the mapping or its lease does.
  [[nodiscard]] std::string contradiction(const PartitionedGpu& gpu) const {
    const auto listed = listed_.find(gpu.address);
    const auto module = moduleOf(gpu);
    const auto other = module ? addresses_.find(*module) : addresses_.end();
    if (gpu.module && listed != listed_.end() && listed->second != *gpu.module) {
      return toString(gpu.address) + " has the module ID " + std::to_string(listed->second) +
             " according to the fabric manager, and " + std::to_string(*gpu.module) +
             " in the mapping";
    }
    if (other != addresses_.end() && other->second != gpu.address) {
      return "the module ID " + std::to_string(*module) + " that " + toString(gpu.address) +
             " has in " + (gpu.module ? "the mapping" : "its lease") + " is that of " +
             toString(other->second);
    }
    return {};
  }

  static PartitionJudgement judgeUnknown(const std::vector<std::string>& unknown) {
    return {Fit::unknown,
            {},
            "the fabric manager does not say which of its modules " + join(unknown, ", ") +
                (unknown.size() == 1 ? " is" : " are") + ", so its partition cannot be told",
            "add `nvlink-module: NUMBER` to each of these GPUs in the mapping: " + moduleRemedy()};
  }

  [[nodiscard]] PartitionJudgement judgeModules(const std::set<unsigned>& modules) const {
    const FabricPartition* found = findPartition(partitions_, modules);
    if (found == nullptr) {
      return judgeNone(modules);
    }
    PartitionJudgement result{Fit::fits, *found,
                              "partition " + std::to_string(found->id) +
                                  " of the fabric manager holds exactly these GPUs and is " +
                                  (found->active ? "active" : "not active"),
                              ""};
    if (const FabricPartition* other = activeOverlap(partitions_, *found)) {
      result.outcome = Fit::blocked;
      result.summary += ": " + nameOfPartition(*other) + " is active and has some of them";
      result.remedy = "run `fmpm -d " + std::to_string(other->id) + "` once no VM uses those GPUs";
    }
    return result;
  }

  [[nodiscard]] PartitionJudgement judgeNone(const std::set<unsigned>& modules) const {
    std::vector<std::string> same;
    for (const FabricPartition& each : partitions_) {
      if (each.gpus.size() == modules.size()) {
        same.push_back(nameOfPartition(each));
      }
    }
    const std::string size = counted(modules.size(), "GPU");
    std::vector<std::string> ids;
    for (const unsigned module : modules) {
      ids.push_back(std::to_string(module));
    }
    return {Fit::none,
            {},
            "no partition of the fabric manager holds exactly these GPUs (module IDs " +
                join(ids, ", ") + ")",
            same.empty() ? "the fabric manager has no partition of " + size +
                               ": use another number of GPUs, or `nvlink: disabled`"
                         : "use the GPUs of a partition of " + size + ": " + joinFirst(same, 16) +
                               "; or `nvlink: disabled`"};
  }

  const std::vector<FabricPartition>& partitions_;
  const std::vector<PartitionedGpu>& gpus_;
  std::map<unsigned, PciAddress> addresses_;
  std::map<PciAddress, unsigned> listed_;
};

}  // namespace

std::vector<PartitionedGpu> withRecordedModules(std::vector<PartitionedGpu> gpus,
                                                const std::vector<Lease>& leases) {
  for (PartitionedGpu& gpu : gpus) {
    const auto lease = std::ranges::find(leases, gpu.address, &Lease::device);
    gpu.recorded = lease == leases.end() ? std::nullopt : nvlinkModuleOf(*lease);
  }
  return gpus;
}

std::optional<PartitionJudgement> judgeRepeatedModules(const std::vector<PartitionedGpu>& gpus) {
  std::set<unsigned> modules;
  for (const PartitionedGpu& gpu : gpus) {
    const auto module = gpu.module ? gpu.module : gpu.recorded;
    if (module && !modules.insert(*module).second) {
      return judgeRepeated(*module);
    }
  }
  return std::nullopt;
}

PartitionJudgement judgePartition(const std::vector<FabricPartition>& partitions,
                                  const std::vector<PartitionedGpu>& gpus) {
  return PartitionJudge(partitions, gpus).judge();
}

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

Fit fitOf(const Topology& topology, const std::vector<FabricPartition>& partitions,
          const Proposal& proposal) {
  const auto gpus = partitionedGpus(topology, proposal);
  return gpus.empty() ? Fit::none : judgePartition(partitions, gpus).outcome;
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
  Proposal best = proposal;
  Fit least = fitOf(topology, partitions, proposal);
  for (const FabricPartition& partition : partitions) {
    const auto addresses = addressesOf(partition);
    // An active one may have a user without a lease.
    if (partition.active || gpus.empty() || addresses.size() != gpus.size()) {
      continue;
    }
    const auto other = proposeAmong(topology, leases, wanted, addresses);
    const Fit fit = other ? fitOf(topology, partitions, *other) : Fit::none;
    if (fit < least && fit <= Fit::blocked) {
      best = *other;
      least = fit;
    }
  }
  return best;
}

}  // namespace vfpass::topology
