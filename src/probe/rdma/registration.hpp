#pragma once

#include <string>
#include <vector>

#include "rdma/rdma_core.hpp"

namespace vfpass::probe {

class GpuMemory;
class Memory;

/// How the RDMA device accesses the memory.
enum class Method { host, dmaBuf, peerMemory };

/// Registered memory, the method used, and why the preferred methods failed.
struct Registration {
  VerbsPointer<ibv_mr> region;
  Method method = Method::host;
  std::vector<std::string> rejected;
};

std::string methodName(Method method);

/// Registers memory for local and remote writes and reads. Tries DMA-BUF first for GPU memory, then
/// peer memory (nvidia_peermem). Throws Error with all reasons if both fail. `relaxedOrdering` is a
/// hint: devices without it ignore it, and so does an older rdma-core.
Registration registerMemory(const VerbsLibrary& library, ibv_pd& domain, const Memory& memory,
                            bool relaxedOrdering);

/// Why a device does not support DMA-BUF memory, tested without such memory (as NCCL does); empty
/// if it does.
std::string dmaBufUnsupported(const VerbsLibrary& library, ibv_pd& domain);

}  // namespace vfpass::probe
