#include "vfpass/topology/propose_mapping.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/topology/nearest_pf.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::topology {
namespace {

using FreeVfs = std::map<std::size_t, std::size_t>;  // by PF; PFs without any are omitted

// Why attach would refuse every VF of this PF; empty: nothing that is known here. faultOfPort() has
// the reasons in detail.
std::string faultOf(const Device& pf) {
  if (pf.totalVfs == 0) {
    return "shows no SR-IOV capability";
  }
  if (pf.driver.empty()) {
    return "is bound to no driver";
  }
  if (pf.netdevs.empty() && pf.rdma.empty()) {
    return "has neither netdev nor RDMA device";
  }
  // An InfiniBand PF may have OFED's files instead.
  return pf.netdevs.empty() && linkTypeOf(pf) == LinkLayer::ethernet ? "has no netdev" : "";
}

bool isLeased(const Device& function, const std::vector<Lease>& leases) {
  return std::ranges::find(leases, function.address, &Lease::device) != leases.end();
}

FreeVfs freeVfs(const Topology& topology, const std::vector<Lease>& leases) {
  FreeVfs free;
  for (const std::size_t pf : rdmaPfs(topology)) {
    const Device& function = topology.functions[pf];
    if (!faultOf(function).empty() || isLeased(function, leases)) {
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

// Nobody can have an unfit device, as if it were leased.
std::vector<Lease> withUnfit(const Topology& topology, std::vector<Lease> leases,
                             const std::vector<PciAddress>& unfit) {
  for (const PciAddress& address : unfit) {
    const Device* device = findFunction(topology, address);
    if (device != nullptr && !isLeased(*device, leases)) {
      Lease lease;
      lease.device = address;
      lease.pf = device->physicalFunction.value_or(address);
      leases.push_back(std::move(lease));
    }
  }
  return leases;
}

std::vector<std::size_t> freeGpus(const Topology& topology, const std::vector<Lease>& leases) {
  auto free = gpus(topology);
  std::erase_if(free, [&](std::size_t gpu) { return isLeased(topology.functions[gpu], leases); });
  return free;
}

void requireGpus(const Topology& topology, std::size_t wanted, std::size_t have) {
  if (wanted > 0 && gpus(topology).empty()) {
    throw Error("this host has no GPU", "propose VFs alone: `--gpus 0 --vfs NUMBER`");
  }
  if (wanted > have) {
    throw Error(counted(wanted, "GPU") + " requested, but this host has only " +
                    std::to_string(have) + " that are not leased",
                "request fewer, or release some; `vfpass status` shows the leases");
  }
}

std::size_t sumOf(const FreeVfs& free) {
  std::size_t sum = 0;
  for (const auto& [pf, count] : free) {
    sum += count;
  }
  return sum;
}

// NICs without RDMA, most of them for management, are not worth a name.
[[noreturn]] void throwWithoutVfs(const Topology& topology) {
  constexpr std::size_t namedPfs = 4;
  std::vector<std::string> faults;
  for (const Device& nic : topology.functions) {
    const bool candidate = nic.role == FunctionRole::nic && !nic.physicalFunction &&
                           (isRdmaCapable(nic) || hasMlx5Firmware(nic.vendor, nic.driver));
    const std::string fault = candidate ? faultOf(nic) : "";
    if (!fault.empty() && faults.size() < namedPfs) {
      faults.push_back(toString(nic.address) + " " + fault);
    }
  }
  throw Error(faults.empty() ? "this host has no NIC with RDMA that can have VFs"
                             : "no PF of this host can have VFs: " + join(faults, ", "),
              "run `vfpass doctor`: its checks sriov-firmware and pf-netdev name the cause");
}

void requireVfs(const Topology& topology, const std::vector<Lease>& leases, std::size_t wanted) {
  if (wanted > 0 && sumOf(freeVfs(topology, {})) == 0) {
    throwWithoutVfs(topology);
  }
  const std::size_t have = sumOf(freeVfs(topology, leases));
  if (wanted > have) {
    throw Error(counted(wanted, "VF") + " of NICs with RDMA requested, but this host has only " +
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

// True when all that the board's fabric manager needs can be passed to the guest. If these are not
// among the PCI functions, it is unknown what the fabric manager in the guest would need.
bool fabricIsFree(const Topology& topology, const NvlinkBoard& board,
                  const std::vector<Lease>& leases) {
  const auto fabric = fabricOf(board);
  return !fabric.empty() && std::ranges::none_of(fabric, [&](std::size_t number) {
    return isLeased(topology.functions[number], leases);
  });
}

// The baseboard whose GPUs are the proposed ones; nullopt: none, or it lacks an NVSwitch that the
// other one has. Then the host does not show all of it, and no fabric manager could work.
std::optional<NvlinkBoard> wholeBoard(const Topology& topology, const Proposal& proposal) {
  std::vector<NvlinkBoard> boards = nvlinkBaseboards(topology);
  std::size_t most = 0;
  for (const NvlinkBoard& board : boards) {
    most = std::max(most, board.switches.size());
  }
  boards.push_back(nvlinkBoard(topology));
  const std::size_t given = countIn(proposal.gpus, boards.back().gpus);
  const auto found = std::ranges::find_if(boards, [&](const NvlinkBoard& board) {
    return board.gpus.size() == given && countIn(proposal.gpus, board.gpus) == given &&
           board.switches.size() >= most;
  });
  return found == boards.end() ? std::nullopt : std::optional(*found);
}

void chooseNvlink(const Topology& topology, const std::vector<Lease>& leases, Proposal& proposal) {
  const NvlinkBoard board = nvlinkBoard(topology);
  const std::size_t given = countIn(proposal.gpus, board.gpus);
  if (given == 0) {
    return;
  }
  const auto whole = wholeBoard(topology, proposal);
  if (whole && fabricIsFree(topology, *whole, leases)) {
    proposal.nvlink = NvlinkMode::all;
    proposal.nvswitches = whole->switches;
    proposal.nvlinkManagers = whole->managers;
  } else {
    const bool partition = given > 1 && isPartitionSize(given) && fabricIsDriven(topology, board);
    proposal.nvlink = partition ? NvlinkMode::partition : NvlinkMode::disabled;
  }
}

}  // namespace

namespace {

Proposal proposeFrom(const Topology& topology, const std::vector<Lease>& leases,
                     const FreeVfs& free, const Wanted& wanted) {
  Proposal proposal;
  if (wanted.gpus == 0) {
    proposal.vfs = vfsAlone(topology, free, wanted.vfs);
    return proposal;
  }
  const auto chosen =
      chooseRails(topology, rails(topology, freeGpus(topology, leases), keysOf(free)), wanted.gpus);
  for (const Rail& rail : chosen) {
    proposal.gpus.push_back(rail.gpu);
  }
  chooseNvlink(topology, leases, proposal);
  proposal.vfs = vfsForGpus(topology, chosen, free, wanted.vfs);
  return proposal;
}

FreeVfs ofKind(const Topology& topology, FreeVfs free, const NicKind& kind) {
  std::erase_if(free,
                [&](const auto& entry) { return kindOf(topology.functions[entry.first]) != kind; });
  return free;
}

std::string nameOf(const Topology& topology, const FreeVfs& free) {
  std::vector<std::string> pfs;
  for (const auto& [pf, count] : free) {
    pfs.push_back(toString(topology.functions[pf].address));
  }
  return joinFirst(pfs);
}

// Lower is better: the longest paths first, then PFs that cannot be used, then kinds other than
// that of the first VF without this limit.
std::tuple<std::vector<Distance>, std::size_t, bool> rankOf(const Topology& topology,
                                                            const Proposal& proposal,
                                                            const NicKind& first) {
  std::vector<Distance> distances;
  std::size_t unusable = 0;
  for (const ProposedVf& vf : proposal.vfs) {
    distances.push_back(vf.distance);
    unusable += isUsable(topology.functions[vf.pf]) ? 0 : 1;
  }
  std::ranges::sort(distances, std::ranges::greater());
  return {distances, unusable, kindOf(topology.functions[proposal.vfs.front().pf]) != first};
}

// The numbers of free VFs by kind, for a message.
[[noreturn]] void throwTooFewOfAnyKind(const Topology& topology, const FreeVfs& free,
                                       const std::set<NicKind>& kinds, const Wanted& wanted) {
  std::vector<std::string> parts;
  for (const NicKind& kind : kinds) {
    const FreeVfs part = ofKind(topology, free, kind);
    parts.push_back(std::to_string(sumOf(part)) + " of " + std::string(toString(kind.link)) +
                    " PFs " + nameOf(topology, part));
  }
  throw Error(
      counted(wanted.vfs, "VF") +
          " requested, but no vendor and link type has that many free: " + join(parts, "; "),
      "request fewer: NICs of several vendors or link types serve no common network");
}

}  // namespace

Proposal propose(const Topology& topology, const std::vector<Lease>& recorded,
                 const Wanted& wanted) {
  const auto leases = withUnfit(topology, recorded, wanted.unfit);
  requireGpus(topology, wanted.gpus, freeGpus(topology, leases).size());
  requireVfs(topology, leases, wanted.vfs);
  FreeVfs free = freeVfs(topology, leases);
  if (wanted.infiniband) {
    std::erase_if(free, [&](const auto& entry) {
      return linkTypeOf(topology.functions[entry.first]) != LinkLayer::infiniband;
    });
    if (sumOf(free) < wanted.vfs) {
      throw Error(counted(wanted.vfs, "VF") + " of InfiniBand NICs requested, but this host has " +
                      (free.empty() ? "no InfiniBand PF with free VFs"
                                    : "only " + std::to_string(sumOf(free)) + " free"),
                  "request fewer, or omit `--infiniband`; `vfpass pf list` shows the link types");
    }
  }
  if (wanted.vfs == 0) {
    return proposeFrom(topology, leases, free, wanted);
  }
  // All VFs from one kind of NIC: the one that serves them best.
  const Proposal unlimited = proposeFrom(topology, leases, free, wanted);
  const NicKind first = kindOf(topology.functions[unlimited.vfs.front().pf]);
  std::set<NicKind> kinds;
  for (const auto& [pf, count] : free) {
    kinds.insert(kindOf(topology.functions[pf]));
  }
  std::vector<Proposal> proposals;
  for (const NicKind& kind : kinds) {
    const FreeVfs part = ofKind(topology, free, kind);
    if (sumOf(part) >= wanted.vfs) {
      proposals.push_back(proposeFrom(topology, leases, part, wanted));
    }
  }
  if (proposals.empty()) {
    throwTooFewOfAnyKind(topology, free, kinds, wanted);
  }
  return *std::ranges::min_element(
      proposals, {}, [&](const Proposal& proposal) { return rankOf(topology, proposal, first); });
}

std::vector<std::size_t> nvlinkPartitionsNear(const Topology& topology, const Proposal& proposal) {
  const NvlinkBoard board = nvlinkBoard(topology);
  const std::size_t given = countIn(proposal.gpus, board.gpus);
  std::vector<std::size_t> sizes;
  if (given > 1 && proposal.nvlink == NvlinkMode::disabled && fabricIsDriven(topology, board) &&
      !isPartitionSize(given)) {
    std::size_t below = given;
    while (!isPartitionSize(below)) {
      --below;
    }
    sizes.push_back(below);
    if (2 * below <= board.gpus.size()) {
      sizes.push_back(2 * below);
    }
  }
  return sizes;
}

}  // namespace vfpass::topology
