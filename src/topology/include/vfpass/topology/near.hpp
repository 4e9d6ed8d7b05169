#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "vfpass/topology/distance.hpp"

namespace vfpass::topology {

/// Somebody wants a PF near this function (a GPU, mostly). Numbers are those of
/// Topology::functions.
struct NearWish {
  std::size_t function = 0;
  std::optional<std::size_t> kept;  ///< the PF it has; stays as long as none is nearer
};

/// What it gets.
struct NearPf {
  std::optional<std::size_t> pf;      ///< none: there is no candidate
  Distance distance = Distance::sys;  ///< between the two
  std::vector<std::size_t> alike;     ///< other candidates as near as that one
};

/// The PFs among which is chosen; the caller leaves out those that can do no RDMA.
struct NearCandidates {
  std::vector<std::size_t> pfs;
  std::set<std::size_t> full;             ///< of these, those without a VF to give
  std::map<std::size_t, unsigned> taken;  ///< VFs that are taken from them anyway
};

/// The nearest PF for each wish. Of several that are as near it gets, in this order: the one it
/// has, one with a VF to give, one in working order, the one with the largest share of its rate for
/// one more VF (those of the other wishes count, too), the lowest address. Wishes with the shortest
/// way choose first, of these the ones with the fewest candidates, otherwise in their order. A wish
/// for another PF than the nearest is never made: a full one is returned.
std::vector<NearPf> nearPfs(const Topology& topology, const std::vector<NearWish>& wishes,
                            NearCandidates candidates);

}  // namespace vfpass::topology
