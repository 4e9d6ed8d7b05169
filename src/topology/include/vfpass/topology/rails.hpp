#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "vfpass/topology/distance.hpp"

namespace vfpass::topology {

/// A GPU and the PF that serves it best.
struct Rail {
  std::size_t gpu = 0;                ///< index in Topology::functions, as for all numbers here
  std::optional<std::size_t> pf;      ///< nullopt: the host has no PF with RDMA
  Distance distance = Distance::sys;  ///< of those two
  std::vector<std::size_t> alike;     ///< other equally near PFs
};

/// GPUs and PFs by address, without GPUs that are VFs (vGPU) and NICs that are not PFs.
std::vector<std::size_t> gpus(const Topology& topology);
std::vector<std::size_t> pfs(const Topology& topology);
/// The PFs with RDMA.
std::vector<std::size_t> rdmaPfs(const Topology& topology);

/// One rail for each GPU, by the GPU's address, among PFs with RDMA. Among equally near PFs a GPU
/// gets a usable one, of these the one whose rate leaves the largest share (among equally fast
/// ones: that serves the fewest GPUs), of these the lowest address. GPUs with the shortest path
/// choose first.
std::vector<Rail> rails(const Topology& topology);
/// The same for these GPUs among these PFs only.
std::vector<Rail> rails(const Topology& topology, const std::vector<std::size_t>& gpus,
                        std::vector<std::size_t> pfs);

/// True when a port of its RDMA devices is active, or, without an RDMA device, its netdev is up.
bool isUsable(const TopologyFunction& pf);

}  // namespace vfpass::topology
