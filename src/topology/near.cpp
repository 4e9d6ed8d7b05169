#include "vfpass/topology/near.hpp"

#include <algorithm>
#include <utility>

#include "pf_rank.hpp"

namespace vfpass::topology {
namespace {

// All candidates at the shortest distance; choose() selects one of them.
NearPf nearestOf(const Topology& topology, std::size_t function,
                 const std::vector<std::size_t>& pfs) {
  NearPf nearest;
  for (const std::size_t pf : pfs) {
    const Distance found = distance(topology, function, pf);
    if (found < nearest.distance || nearest.alike.empty()) {
      nearest.distance = found;
      nearest.alike.clear();
    }
    if (found == nearest.distance) {
      nearest.alike.push_back(pf);
    }
  }
  return nearest;
}

void take(std::vector<std::size_t>::iterator chosen, NearPf& near, NearCandidates& candidates) {
  near.pf = *chosen;
  near.alike.erase(chosen);
  ++candidates.taken[*near.pf];
}

void choose(const Topology& topology, NearPf& near, NearCandidates& candidates) {
  const auto best = std::ranges::min_element(near.alike, {}, [&](std::size_t pf) {
    return std::pair(candidates.full.contains(pf),
                     rankOf(topology.functions[pf], candidates.taken[pf]));
  });
  if (best != near.alike.end()) {
    take(best, near, candidates);
  }
}

}  // namespace

std::vector<NearPf> nearPfs(const Topology& topology, const std::vector<NearRequest>& requests,
                            NearCandidates candidates) {
  std::vector<NearPf> found;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    NearPf& near = found.emplace_back(nearestOf(topology, requests[i].function, candidates.pfs));
    const auto kept =
        requests[i].kept ? std::ranges::find(near.alike, *requests[i].kept) : near.alike.end();
    if (kept != near.alike.end()) {
      take(kept, near, candidates);
    } else {
      open.push_back(i);
    }
  }
  std::ranges::stable_sort(open, {}, [&](std::size_t request) {
    return std::pair(found[request].distance, found[request].alike.size());
  });
  for (const std::size_t request : open) {
    choose(topology, found[request], candidates);
  }
  return found;
}

}  // namespace vfpass::topology
