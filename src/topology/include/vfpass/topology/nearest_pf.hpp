#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "vfpass/topology.hpp"
#include "vfpass/topology/distance.hpp"

namespace vfpass::topology {

/// GPUs and PFs by address, without GPUs that are VFs (vGPU) and NICs that are not PFs.
std::vector<std::size_t> gpus(const Topology& topology);
std::vector<std::size_t> pfs(const Topology& topology);
/// The PFs with RDMA.
std::vector<std::size_t> rdmaPfs(const Topology& topology);

/// True when a port of its RDMA devices is active, or, without an RDMA device, its netdev is up.
bool isUsable(const Device& pf);

/// The rate that one more VF of a PF can expect, in Mbit/s: the PF's rate divided by the number of
/// its taken VFs plus one. The rate is that of its fastest port, or of its PCI Express link if that
/// is slower or no port reports a rate. 0: unknown.
std::uint64_t shareOf(const Device& pf, unsigned taken);

/// A request for a PF near this function, usually a GPU. Numbers are indexes in
/// Topology::functions.
struct NearRequest {
  std::size_t function = 0;
  std::optional<std::size_t> kept;  ///< its current PF, kept as long as none is nearer
  /// The candidates that it can take; nullopt: all.
  std::optional<std::set<std::size_t>> among = {};
};

/// The PF that was chosen.
struct NearPf {
  std::optional<std::size_t> pf;      ///< nullopt: there is no candidate
  Distance distance = Distance::sys;  ///< between the two
  std::vector<std::size_t> alike;     ///< other candidates as near as that one
};

/// The PFs to choose from; the caller omits those without RDMA.
struct NearCandidates {
  std::vector<std::size_t> pfs;
  std::set<std::size_t> full;             ///< of these, those without a free VF
  std::map<std::size_t, unsigned> taken;  ///< number of VFs already taken
};

/// The nearest PF for each request. Among equally near ones, in this order: its current PF, one
/// with a free VF, one that is usable, the one with the largest share of its rate for one more VF
/// (VFs of the other requests count), the lowest address. Requests with the shortest path choose
/// first, among these the ones with the fewest candidates, otherwise in their order. The result is
/// always a nearest PF, even if that has no free VF.
std::vector<NearPf> nearPfs(const Topology& topology, const std::vector<NearRequest>& requests,
                            NearCandidates candidates);

/// The kind of which every request gets a PF, so that one VM's rails can communicate: that of their
/// current PFs if there are any, otherwise the one with the shortest longest path, then the
/// shortest others; among equally near ones the one with the fewest PFs that are unusable or
/// without a free VF, then ConnectX, then that of most PFs that the requests get without such a
/// limit, then that of the first. nullopt if some request has no near PF (SYS) of any one of these
/// kinds, or if their current PFs are of several kinds.
std::optional<NicKind> commonKind(const Topology& topology,
                                  const std::vector<NearRequest>& requests,
                                  const NearCandidates& candidates);

/// The candidates of this kind.
std::set<std::size_t> ofKind(const Topology& topology, const std::vector<std::size_t>& pfs,
                             const NicKind& kind);

/// A GPU and the PF that serves it best.
struct Rail {
  std::size_t gpu = 0;                ///< index in Topology::functions, as for all numbers here
  std::optional<std::size_t> pf;      ///< nullopt: the host has no PF with RDMA
  Distance distance = Distance::sys;  ///< of those two
  std::vector<std::size_t> alike;     ///< other equally near PFs
};

/// One rail for each GPU, by the GPU's address, among PFs with RDMA. Among equally near PFs a GPU
/// gets a usable one, of these the one whose rate leaves the largest share (among equally fast
/// ones: that serves the fewest GPUs), of these the lowest address. GPUs with the shortest path
/// choose first.
std::vector<Rail> rails(const Topology& topology);
/// The same for these GPUs among these PFs only.
std::vector<Rail> rails(const Topology& topology, const std::vector<std::size_t>& gpus,
                        std::vector<std::size_t> pfs);

}  // namespace vfpass::topology
