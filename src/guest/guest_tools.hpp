#pragma once

#include <set>
#include <string>

#include "judge_device.hpp"
#include "judge_gpu_place.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/guest/agent.hpp"

namespace vfpass::guest {

/// Which of perftest's and nccl-tests' programs the guest has in its path. Throws AgentUnavailable.
std::set<std::string> findTools(Agent& agent);

/// What is run with them.
struct ToolRun {
  std::string subject;
  std::uint64_t bytes = 0;
  std::uint64_t iterations = 0;
  std::optional<NearestGpu> gpu;  ///< its memory, where perftest knows CUDA
};

/// perftest over this port, in loopback: bandwidth and latency, of write and read. Its figures
/// stand beside ours; they check nothing, so a tool that fails is a warning and never a failure.
/// Throws AgentUnavailable.
Finding runPerftest(Agent& agent, const std::set<std::string>& tools, const RdmaPort& port,
                    const ToolRun& run, std::vector<Figure>& figures);

/// all_reduce_perf over the guest's GPUs. One VM's GPUs reach each other without its NICs: it says
/// what NCCL makes of the guest, and nothing of the network.
Finding runAllReduce(Agent& agent, const std::set<std::string>& tools, std::size_t gpus,
                     std::vector<Figure>& figures);

}  // namespace vfpass::guest
