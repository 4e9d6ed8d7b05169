#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "vfpass/topology/distance.hpp"

namespace vfpass::topology {

/// A request for a PF near this function, usually a GPU. Numbers are indexes in
/// Topology::functions.
struct NearRequest {
  std::size_t function = 0;
  std::optional<std::size_t> kept;  ///< its current PF, kept as long as none is nearer
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

}  // namespace vfpass::topology
