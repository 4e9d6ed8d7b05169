#pragma once

#include <set>
#include <string>

#include "judge_device.hpp"
#include "judge_gpu_place.hpp"
#include "vfpass/agent/agent.hpp"
#include "vfpass/finding.hpp"

namespace vfpass::verify {

/// Programs of perftest and nccl-tests in the guest's PATH. Throws AgentUnavailable.
std::set<std::string> findTools(agent::Agent& agent);

/// Parameters of a run of the guest's own tools.
struct ToolRun {
  std::string subject;
  std::uint64_t bytes = 0;
  std::uint64_t iterations = 0;
  std::optional<TestedGpu> gpu;  ///< use its memory, if perftest supports CUDA
};

/// Runs perftest over this port in loopback: bandwidth and latency of write and read. Its figures
/// are shown next to ours. perftest verifies no data, so its failure is a warning only. Throws
/// AgentUnavailable.
Finding runPerftest(agent::Agent& agent, const std::set<std::string>& tools, const RdmaPort& port,
                    const ToolRun& run, std::vector<Figure>& figures);

/// Runs all_reduce_perf over the guest's GPUs. The GPUs of one VM reach each other without its
/// NICs, so the result shows how NCCL uses the guest, not the network. Throws AgentUnavailable.
Finding runAllReduce(agent::Agent& agent, const std::set<std::string>& tools, std::size_t gpus,
                     std::vector<Figure>& figures);

}  // namespace vfpass::verify
