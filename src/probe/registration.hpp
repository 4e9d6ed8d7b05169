#pragma once

#include <string>
#include <vector>

#include "verbs_objects.hpp"

namespace vfpass::probe {

class GpuMemory;
class Memory;

/// How the RDMA device came to reach the memory.
enum class Road { host, dmaBuf, peerMemory };

/// Registered memory, the road taken, and why the roads before it were not.
struct Registration {
  VerbsPointer<ibv_mr> region;
  Road road = Road::host;
  std::vector<std::string> notTaken;
};

std::string roadName(Road road);

/// For local and remote use, writes and reads. GPU memory goes by DMA-BUF first, then by peer
/// memory (nvidia_peermem). Throws Error with all reasons when there is no road. `relaxedOrdering`
/// is a wish: devices that do not have it ignore it, and so does an older rdma-core.
Registration registerMemory(const VerbsLibrary& library, ibv_pd& domain, const Memory& memory,
                            bool relaxedOrdering);

/// What a device says to DMA-BUF memory, asked without any (NCCL asks the same way): empty when it
/// takes it, otherwise why it is not supported here.
std::string dmaBufObjection(const VerbsLibrary& library, ibv_pd& domain);

}  // namespace vfpass::probe
