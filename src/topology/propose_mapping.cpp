#include "vfpass/topology/propose_mapping.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "vfpass/error.hpp"
#include "vfpass/topology/nearest_pf.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::topology {
namespace {

using FreeVfs = std::map<std::size_t, std::size_t>;  // by PF; PFs without any are omitted

// Its driver or firmware has failed, or an InfiniBand driver is not loaded (faultOfPort()).
bool hasNoPort(const Device& pf) {
  return !pf.driver.empty() && pf.netdevs.empty() && pf.rdma.empty();
}

FreeVfs freeVfs(const Topology& topology, const std::vector<Lease>& leases) {
  FreeVfs free;
  for (const std::size_t pf : rdmaPfs(topology)) {
    const Device& function = topology.functions[pf];
    if (hasNoPort(function)) {
      continue;
    }
    const auto taken =
        static_cast<std::size_t>(std::ranges::count(leases, function.address, &Lease::pf));
    if (function.totalVfs > taken) {
      free[pf] = function.totalVfs - taken;
    }
  }
  return free;
}

bool isLeased(const Device& function, const std::vector<Lease>& leases) {
  return std::ranges::find(leases, function.address, &Lease::device) != leases.end();
}

std::vector<std::size_t> freeGpus(const Topology& topology, const std::vector<Lease>& leases) {
  auto free = gpus(topology);
  std::erase_if(free, [&](std::size_t gpu) { return isLeased(topology.functions[gpu], leases); });
  return free;
}

void requireEnough(std::size_t wanted, std::size_t have, const std::string& what) {
  if (wanted > have) {
    throw Error(std::to_string(wanted) + " " + what + " requested, but this host has only " +
                    std::to_string(have) + " that are not leased",
                "request fewer, or release some; `vfpass status` shows the leases");
  }
}

// Prefers rails of one node: first the node whose `count` best rails are the shortest. A guest
// spans two nodes only when no node has enough.
std::vector<Rail> chooseRails(const Topology& topology, std::vector<Rail> rails,
                              std::size_t count) {
  std::map<int, std::vector<Distance>> nodes;
  for (const Rail& rail : rails) {
    nodes[topology.functions[rail.gpu].numaNode].push_back(rail.distance);
  }
  std::map<int, std::pair<bool, std::vector<Distance>>> ranks;
  for (auto& [node, distances] : nodes) {
    std::ranges::sort(distances);
    const bool tooFew = distances.size() < count;
    distances.resize(std::min(distances.size(), count));
    std::reverse(distances.begin(), distances.end());  // the longest of them weighs most
    ranks[node] = {tooFew, distances};
  }
  std::ranges::stable_sort(rails, [&](const Rail& one, const Rail& other) {
    const int first = topology.functions[one.gpu].numaNode;
    const int second = topology.functions[other.gpu].numaNode;
    return std::tie(ranks[first], first, one.distance) <
           std::tie(ranks[second], second, other.distance);
  });
  rails.resize(std::min(rails.size(), count));
  std::ranges::sort(rails, {}, &Rail::gpu);
  return rails;
}

// Among the rail's PF and the equally near ones with free VFs, the one that leaves the largest
// share; on a tie the rail's own PF, or the one with fewer VFs given.
std::optional<std::size_t> nextPf(const Topology& topology, const Rail& rail, const FreeVfs& free,
                                  std::map<std::size_t, unsigned>& given) {
  const auto share = [&](std::size_t pf) { return shareOf(topology.functions[pf], given[pf]); };
  const auto isBetter = [&](std::size_t pf, std::size_t best) {
    return share(pf) > share(best) || (share(pf) == share(best) && given[pf] < given[best]);
  };
  auto best = rail.pf && free.contains(*rail.pf) ? rail.pf : std::nullopt;
  for (const std::size_t pf : rail.alike) {
    if (free.contains(pf) && (!best || isBetter(pf, *best))) {
      best = pf;
    }
  }
  return best;
}

ProposedVf take(std::size_t pf, FreeVfs& free) {
  ProposedVf vf;
  vf.pf = pf;
  vf.freeVfs = free.at(pf);
  if (--free.at(pf) == 0) {
    free.erase(pf);
  }
  return vf;
}

std::vector<std::size_t> keysOf(const FreeVfs& free) {
  std::vector<std::size_t> keys(free.size());
  std::transform(free.begin(), free.end(), keys.begin(),
                 [](const auto& entry) { return entry.first; });
  return keys;
}

// Gives VFs to the GPUs in turn. When no PF of a rail has a free VF, the rail is chosen again among
// the remaining PFs.
std::vector<ProposedVf> vfsForGpus(const Topology& topology, std::vector<Rail> chosen, FreeVfs free,
                                   std::size_t count) {
  std::vector<ProposedVf> vfs;
  std::map<std::size_t, unsigned> given;
  for (std::size_t i = 0; i < count; ++i) {
    Rail& rail = chosen[i % chosen.size()];
    auto pf = nextPf(topology, rail, free, given);
    if (!pf) {
      rail = rails(topology, {rail.gpu}, keysOf(free)).front();
      pf = nextPf(topology, rail, free, given).value();
    }
    ++given[*pf];
    ProposedVf vf = take(*pf, free);
    vf.gpu = rail.gpu;
    vf.distance = rail.distance;
    vf.alike = rail.alike;
    if (rail.pf && *rail.pf != *pf) {
      std::replace(vf.alike.begin(), vf.alike.end(), *pf, *rail.pf);
    }
    vfs.push_back(std::move(vf));
  }
  return vfs;
}

// Without a GPU: usable PFs first, then the largest share of the rate, then the most free VFs.
std::vector<ProposedVf> vfsAlone(const Topology& topology, FreeVfs free, std::size_t count) {
  std::vector<ProposedVf> vfs;
  std::map<std::size_t, unsigned> given;
  while (vfs.size() < count) {
    const auto best =
        std::min_element(free.begin(), free.end(), [&](const auto& one, const auto& other) {
          const auto rank = [&](const auto& entry) {
            const Device& pf = topology.functions[entry.first];
            const unsigned taken = given[entry.first];
            return std::tuple(!isUsable(pf), ~shareOf(pf, taken), taken, ~entry.second);
          };
          return rank(one) < rank(other);
        });
    ++given[best->first];
    vfs.push_back(take(best->first, free));
  }
  return vfs;
}

std::size_t countIn(const std::vector<std::size_t>& these, const std::vector<std::size_t>& those) {
  return static_cast<std::size_t>(std::ranges::count_if(
      these, [&](std::size_t each) { return std::ranges::find(those, each) != those.end(); }));
}

// True when the board's NVSwitches can be passed to the guest. If they are not PCI functions, it is
// unknown what the fabric manager in the guest would need.
bool switchesAreFree(const Topology& topology, const NvlinkBoard& board,
                     const std::vector<Lease>& leases) {
  return !board.switches.empty() && std::ranges::none_of(board.switches, [&](std::size_t number) {
    return isLeased(topology.functions[number], leases);
  });
}

void chooseNvlink(const Topology& topology, const std::vector<Lease>& leases, Proposal& proposal) {
  const NvlinkBoard board = nvlinkBoard(topology);
  const std::size_t given = countIn(proposal.gpus, board.gpus);
  if (given == 0) {
    return;
  }
  if (given == board.gpus.size() && switchesAreFree(topology, board, leases)) {
    proposal.nvlink = NvlinkMode::all;
    proposal.nvswitches = board.switches;
  } else {
    const bool partition = given > 1 && isPartitionSize(given) && !board.switches.empty() &&
                           switchesAreDriven(topology, board);
    proposal.nvlink = partition ? NvlinkMode::partition : NvlinkMode::disabled;
  }
}

}  // namespace

Proposal propose(const Topology& topology, const std::vector<Lease>& leases, std::size_t gpuCount,
                 std::size_t vfCount) {
  const FreeVfs free = freeVfs(topology, leases);
  const auto candidates = freeGpus(topology, leases);
  std::size_t available = 0;
  for (const auto& [pf, count] : free) {
    available += count;
  }
  requireEnough(gpuCount, candidates.size(), "GPUs");
  requireEnough(vfCount, available, "VFs of NICs with RDMA");
  Proposal proposal;
  if (gpuCount == 0) {
    proposal.vfs = vfsAlone(topology, free, vfCount);
    return proposal;
  }
  const auto chosen = chooseRails(topology, rails(topology, candidates, keysOf(free)), gpuCount);
  for (const Rail& rail : chosen) {
    proposal.gpus.push_back(rail.gpu);
  }
  chooseNvlink(topology, leases, proposal);
  proposal.vfs = vfsForGpus(topology, chosen, free, vfCount);
  return proposal;
}

}  // namespace vfpass::topology
