#include "vfpass/topology/nearest_pf.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

#include "vfpass/mlx5_firmware.hpp"

namespace vfpass::topology {
namespace {

template <typename Test>
std::vector<std::size_t> numbersOf(const Topology& topology, Test test) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < topology.functions.size(); ++i) {
    if (test(topology.functions[i])) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

// The rate of the fastest port in Mbit/s; 0: unknown.
std::uint64_t portRateOf(const Device& pf) {
  std::uint64_t rate = 0;
  for (const auto& device : pf.rdma) {
    for (const auto& port : device.ports) {
      rate = std::max<std::uint64_t>(rate, port.rate);
    }
  }
  return rate;
}

// Lower is better among equally near PFs: a usable one, a ConnectX (only those have all of vfpass's
// checks), the largest share of its rate (among equally fast ones: the fewest VFs taken), the
// lowest address.
std::tuple<bool, bool, std::uint64_t, unsigned, PciAddress> rankOf(const Device& pf,
                                                                   unsigned taken) {
  return {!isUsable(pf), pf.vendor != mellanox, ~shareOf(pf, taken), taken, pf.address};
}

// All candidates at the shortest distance; choose() selects one of them.
NearPf nearestOf(const Topology& topology, const NearRequest& request,
                 const std::vector<std::size_t>& pfs) {
  NearPf nearest;
  for (const std::size_t pf : pfs) {
    if (request.among && !request.among->contains(pf)) {
      continue;
    }
    const Distance found = dataDistance(topology, request.function, pf);
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

std::vector<std::size_t> gpus(const Topology& topology) {
  return numbersOf(topology, [](const Device& function) {
    return function.role == FunctionRole::gpu && !function.physicalFunction;
  });
}

std::vector<std::size_t> pfs(const Topology& topology) { return numbersOf(topology, isPf); }

std::vector<std::size_t> rdmaPfs(const Topology& topology) {
  return numbersOf(topology, isRdmaCapable);
}

bool isUsable(const Device& pf) {
  const auto active = [](const RdmaDevice& device) {
    return std::ranges::find(device.ports, "ACTIVE", &RdmaPort::state) != device.ports.end();
  };
  return pf.rdma.empty() ? std::ranges::any_of(pf.netdevs, &Netdev::up)
                         : std::ranges::any_of(pf.rdma, active);
}

std::uint64_t shareOf(const Device& pf, unsigned taken) {
  const std::uint64_t port = portRateOf(pf);
  // One bit per transfer and lane; the encoding overhead is the same for all.
  const std::uint64_t link = std::uint64_t{pf.best.speed} * pf.best.width;
  const std::uint64_t rate = port == 0 || link == 0 ? std::max(port, link) : std::min(port, link);
  return rate / (std::uint64_t{taken} + 1);
}

std::vector<NearPf> nearPfs(const Topology& topology, const std::vector<NearRequest>& requests,
                            NearCandidates candidates) {
  std::vector<NearPf> found;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    NearPf& near = found.emplace_back(nearestOf(topology, requests[i], candidates.pfs));
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

std::set<std::size_t> ofKind(const Topology& topology, const std::vector<std::size_t>& pfs,
                             const NicKind& kind) {
  std::set<std::size_t> found;
  std::ranges::copy_if(pfs, std::inserter(found, found.end()),
                       [&](std::size_t pf) { return kindOf(topology.functions[pf]) == kind; });
  return found;
}

namespace {

// How well one kind serves the requests; lower is better.
struct KindRank {
  std::vector<Distance> distances;  // longest first
  std::size_t unfit = 0;            // requests whose PF has no free VF or is not usable
  bool otherVendor = false;         // no ConnectX
  std::size_t others = 0;           // requests that would get another kind without a limit
  bool otherFirst = false;          // the first request is one of these

  auto operator<=>(const KindRank&) const = default;
};

std::vector<Distance> distancesOf(const std::vector<NearPf>& found) {
  std::vector<Distance> distances;
  for (const NearPf& near : found) {
    distances.push_back(near.pf ? near.distance : Distance::sys);
  }
  std::ranges::sort(distances, std::ranges::greater());
  return distances;
}

KindRank rankOf(const Topology& topology, std::vector<NearRequest> requests,
                const NearCandidates& candidates, const std::vector<NearPf>& unlimited,
                const NicKind& kind) {
  KindRank rank;
  rank.otherVendor = kind.vendor != mellanox;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto& pf = unlimited[i].pf;
    const bool isOther = pf && kindOf(topology.functions[*pf]) != kind;
    rank.others += isOther ? 1 : 0;
    rank.otherFirst = rank.otherFirst || (i == 0 && isOther);
    std::set<std::size_t> among = ofKind(topology, candidates.pfs, kind);
    if (requests[i].among) {
      std::erase_if(among, [&](std::size_t each) { return !requests[i].among->contains(each); });
    }
    requests[i].among = std::move(among);
  }
  const auto found = nearPfs(topology, requests, candidates);
  rank.distances = distancesOf(found);
  rank.unfit = static_cast<std::size_t>(std::ranges::count_if(found, [&](const NearPf& near) {
    return near.pf &&
           (candidates.full.contains(*near.pf) || !isUsable(topology.functions[*near.pf]));
  }));
  return rank;
}

std::set<NicKind> keptKinds(const Topology& topology, const std::vector<NearRequest>& requests) {
  std::set<NicKind> kinds;
  for (const NearRequest& request : requests) {
    if (request.kept) {
      kinds.insert(kindOf(topology.functions[*request.kept]));
    }
  }
  return kinds;
}

}  // namespace

std::optional<NicKind> commonKind(const Topology& topology,
                                  const std::vector<NearRequest>& requests,
                                  const NearCandidates& candidates) {
  // A lease keeps its PF: another entry of the VM does not move it to another kind.
  std::set<NicKind> kinds = keptKinds(topology, requests);
  if (requests.empty() || kinds.size() > 1) {
    return std::nullopt;
  }
  if (kinds.empty()) {
    for (const std::size_t pf : candidates.pfs) {
      kinds.insert(kindOf(topology.functions[pf]));
    }
  }
  const auto unlimited = nearPfs(topology, requests, candidates);
  std::optional<std::pair<KindRank, NicKind>> best;
  for (const NicKind& kind : kinds) {
    const auto rank = rankOf(topology, requests, candidates, unlimited, kind);
    if (rank.distances.front() != Distance::sys && (!best || rank < best->first)) {
      best = {rank, kind};
    }
  }
  return best ? std::optional(best->second) : std::nullopt;
}

std::vector<Rail> rails(const Topology& topology) {
  return rails(topology, gpus(topology), rdmaPfs(topology));
}

std::vector<Rail> rails(const Topology& topology, const std::vector<std::size_t>& gpus,
                        std::vector<std::size_t> pfs) {
  std::erase_if(pfs, [&](std::size_t pf) { return !isRdmaCapable(topology.functions[pf]); });
  std::vector<NearRequest> requests;
  for (const std::size_t gpu : gpus) {
    requests.push_back({gpu, {}});
  }
  const auto near = nearPfs(topology, requests, {pfs, {}, {}});
  std::vector<Rail> found;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    found.push_back({gpus[i], near[i].pf, near[i].distance, near[i].alike});
  }
  return found;
}

}  // namespace vfpass::topology
