#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "vfpass/topology/distance.hpp"

namespace vfpass::topology {

/// A GPU and the PF that serves it best.
struct Rail {
  std::size_t gpu = 0;                ///< in Topology::functions, as all numbers here
  std::optional<std::size_t> pf;      ///< none: the host has no PF that can do RDMA
  Distance distance = Distance::sys;  ///< of those two
  std::vector<std::size_t> alike;     ///< other PFs as near as that one
};

/// GPUs and PFs by address. GPUs that are VFs (vGPU) and NICs that are no PFs are not among them.
std::vector<std::size_t> gpus(const Topology& topology);
std::vector<std::size_t> pfs(const Topology& topology);
/// Those of the PFs that can do RDMA.
std::vector<std::size_t> rdmaPfs(const Topology& topology);

/// One rail for each GPU, by the GPU's address, among PFs that can do RDMA. Of several that are
/// equally near a GPU gets one in working order, of these the one whose rate leaves the largest
/// share (among equally fast ones: that serves the fewest GPUs), of these the lowest address. GPUs
/// with the shortest path choose first.
std::vector<Rail> rails(const Topology& topology);
/// The same for these GPUs among these PFs only.
std::vector<Rail> rails(const Topology& topology, const std::vector<std::size_t>& gpus,
                        std::vector<std::size_t> pfs);

/// A port of it is active, or its netdev is up where it has no RDMA device.
bool isUsable(const TopologyFunction& pf);

}  // namespace vfpass::topology
