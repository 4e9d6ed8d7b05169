#include "vfpass/plan/select_pf.hpp"

#include <algorithm>
#include <iterator>

#include "attach_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/topology/nearest_pf.hpp"

namespace vfpass::plan {
namespace {

std::optional<std::size_t> numberOf(const Topology& topology, const PciAddress& address) {
  const auto found = std::ranges::find(topology.functions, address, &Device::address);
  return found == topology.functions.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(found - topology.functions.begin()));
}

std::string nameOf(const Inventory& inventory, const PciAddress& address) {
  const PhysicalFunction* pf = findPf(inventory, address);
  const bool named = pf != nullptr && !pf->netdev().empty();
  return toString(address) + (named ? " (" + printable(pf->netdev()) + ")" : "");
}

const MappedFunction* functionOf(const Mapping& mapping, const MappedVf& entry) {
  const auto found = std::ranges::find(mapping.functions, *entry.pf.near, &MappedFunction::name);
  return found == mapping.functions.end() ? nullptr : &*found;
}

std::size_t leasedTo(const NearInput& input, const PciAddress& pf, bool others) {
  return static_cast<std::size_t>(std::ranges::count_if(input.leases, [&](const Lease& lease) {
    return lease.pf == pf && (lease.domain != input.domain) == others;
  }));
}

// Leases of other domains can fill a PF up; the mapping's own entries only change the ranking.
topology::NearCandidates candidatesOf(const NearInput& input) {
  topology::NearCandidates candidates;
  std::vector<Objection> raisedLater;
  for (const auto& pf : input.inventory.pfs) {
    const auto number = numberOf(input.topology, pf.address);
    if (!number || !isRdmaCapable(input.topology.functions[*number])) {
      continue;
    }
    candidates.pfs.push_back(*number);
    if (leasedTo(input, pf.address, true) >= possibleVfCount(pf, input.policy)) {
      candidates.full.insert(*number);
    }
  }
  for (const auto& entry : input.mapping.vfs) {
    const PhysicalFunction* pf = entry.pf.near ? nullptr
                                               : selectPf(entry.pf, input.mapping, input.inventory,
                                                          entry.place, raisedLater);
    if (const auto number = pf ? numberOf(input.topology, pf->address) : std::nullopt) {
      ++candidates.taken[*number];
    }
  }
  return candidates;
}

// The PF of the lease with this name.
std::optional<std::size_t> keptBy(const NearInput& input, const std::string& name) {
  const Lease* lease = findLease(input.leases, input.domain, name);
  return lease == nullptr ? std::nullopt : numberOf(input.topology, lease->pf);
}

bool hasEntry(const Mapping& mapping, const std::string& name) {
  return std::ranges::find(mapping.vfs, name, &MappedVf::name) != mapping.vfs.end();
}

// The link type that the entry's attributes need; unknown: either.
LinkLayer neededLink(const MappedVf& entry) {
  const VfSettings& settings = entry.settings;
  if (entry.guidsAutomatic || entry.nodeGuidAutomatic || entry.portGuidAutomatic ||
      settings.nodeGuid || settings.portGuid) {
    return LinkLayer::infiniband;
  }
  const bool ethernet =
      !entry.macAutomatic || settings.vlan || entry.teamingWith || entry.interfaceForm;
  return ethernet ? LinkLayer::ethernet : LinkLayer::unknown;
}

std::string_view nameOf(LinkLayer link) {
  return link == LinkLayer::infiniband ? "InfiniBand "
         : link == LinkLayer::ethernet ? "Ethernet "
                                       : "";
}

std::string nearSubject(const MappedVf& entry) {
  return toString(entry.place) + ": " + entry.name + ": `near: " + printable(*entry.pf.near) + "`";
}

std::string listPfs(const NearInput& input, const std::vector<std::size_t>& pfs) {
  std::vector<std::string> names;
  for (const std::size_t pf : pfs) {
    names.push_back(nameOf(input.inventory, input.topology.functions[pf].address));
  }
  return joinFirst(names);
}

// Why no PF is near enough; empty if one is.
std::string faultOf(const NearInput& input, const MappedVf& entry, const topology::NearPf& near) {
  const std::string link(nameOf(neededLink(entry)));
  if (!near.pf) {
    return nearSubject(entry) + ": this host has no " + link + "NIC with SR-IOV, RDMA and a driver";
  }
  if (near.distance != topology::Distance::sys) {
    return {};
  }
  const auto& pf = input.topology.functions[*near.pf];
  return nearSubject(entry) + ": no " + link + "PF is near enough: the nearest one, " +
         nameOf(input.inventory, pf.address) + ", is at distance " +
         std::string(toString(near.distance)) + " (" + std::string(explain(near.distance)) + ")";
}

std::string reasonOf(const NearInput& input, const MappedVf& entry, const topology::NearPf& near) {
  const auto& pf = input.topology.functions[*near.pf];
  return entry.name + ": nearest to " + printable(*entry.pf.near) + " is PF " +
         nameOf(input.inventory, pf.address) + ", " + std::string(toString(near.distance)) + " (" +
         std::string(explain(near.distance)) + ")" +
         (near.alike.empty() ? "" : "; equally near: " + listPfs(input, near.alike));
}

// Why there is no PF, or none near enough.
std::string remedyOf(const MappedVf& entry, const topology::NearPf& near) {
  const LinkLayer link = neededLink(entry);
  if (near.pf) {
    return "to use it anyway, name the PF by `pci:`; `vfpass topo` shows all distances";
  }
  if (link == LinkLayer::unknown) {
    return "`vfpass pf list` names the NICs and what they lack";
  }
  return std::string("`vfpass pf list` shows the link type of each PF; remove ") +
         (link == LinkLayer::infiniband ? "`infiniband:`"
                                        : "the Ethernet attributes (`mac:`, `vlan:`, `teaming:`, "
                                          "`interface:`)") +
         " from the entry, or change the type of a port in the NIC's firmware";
}

struct NearRequests {
  std::vector<MappedVf*> entries;
  std::vector<topology::NearRequest> requests;
};

NearRequests requestsOf(const NearInput& input, NearResolution& resolution) {
  NearRequests all;
  for (auto& entry : resolution.mapping.vfs) {
    const MappedFunction* named = entry.pf.near ? functionOf(input.mapping, entry) : nullptr;
    if (named == nullptr) {  // an unknown name was reported when the mapping was read
      continue;
    }
    if (const auto function = numberOf(input.topology, named->pci)) {
      all.entries.push_back(&entry);
      all.requests.push_back({*function, keptBy(input, entry.name)});
    } else {
      resolution.faults[entry.name] = {
          nearSubject(entry) + ": this host has no PCI function " + toString(named->pci),
          "list the GPUs with `vfpass topo`", ExitCode::badInput};
    }
  }
  return all;
}

// Limits entries to PFs with the link type that they need.
void limitLinks(const NearInput& input, const topology::NearCandidates& candidates,
                NearRequests& all) {
  for (std::size_t i = 0; i < all.requests.size(); ++i) {
    const LinkLayer needed = neededLink(*all.entries[i]);
    if (needed == LinkLayer::unknown) {
      continue;
    }
    auto& among = all.requests[i].among.emplace();
    for (const std::size_t pf : candidates.pfs) {
      const LinkLayer link = linkTypeOf(input.topology.functions[pf]);
      if (link == needed || link == LinkLayer::unknown) {
        among.insert(pf);
      }
    }
  }
}

// Whether the PF of the lease is as near as any to the function of the request.
bool canKeep(const NearInput& input, const topology::NearCandidates& candidates,
             topology::NearRequest request, const Lease& lease) {
  request.kept = numberOf(input.topology, lease.pf);
  return request.kept &&
         topology::nearPfs(input.topology, {request}, candidates).front().pf == request.kept;
}

// An entry with a new name keeps the PF of its lease like one with its old name.
void keepRenamed(const NearInput& input, const topology::NearCandidates& candidates,
                 NearRequests& all) {
  const auto onPf = [&](const MappedVf& entry, const Lease& lease) {
    if (!entry.pf.near) {
      std::vector<Objection> raisedLater;
      const PhysicalFunction* pf =
          selectPf(entry.pf, input.mapping, input.inventory, entry.place, raisedLater);
      return pf != nullptr && pf->address == lease.pf;
    }
    const auto found = std::ranges::find(all.entries, entry.name, &MappedVf::name);
    return found != all.entries.end() && !keptBy(input, entry.name) &&
           !hasEntry(input.mapping, lease.entry) &&
           canKeep(input, candidates,
                   all.requests[static_cast<std::size_t>(found - all.entries.begin())], lease);
  };
  const auto renames = findRenames(input.mapping, input.leases, input.domain, onPf);
  for (std::size_t i = 0; i < all.entries.size(); ++i) {
    const auto renamed = renames.find(all.entries[i]->name);
    if (renamed != renames.end() && !all.requests[i].kept) {
      all.requests[i].kept = keptBy(input, renamed->second);
    }
  }
}

// Limits the entries that need the same link type to PFs of one kind. An entry that needs none
// follows the others.
void limitKinds(const NearInput& input, const topology::NearCandidates& candidates,
                NearRequests& all) {
  std::map<LinkLayer, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < all.requests.size(); ++i) {
    groups[neededLink(*all.entries[i])].push_back(i);
  }
  if (groups.size() == 2) {  // all can have one kind
    const auto free = groups.find(LinkLayer::unknown);
    if (free != groups.end()) {
      auto& others = std::prev(groups.end())->second;
      others.insert(others.end(), free->second.begin(), free->second.end());
      groups.erase(free);
    }
  }
  for (const auto& [link, members] : groups) {
    std::vector<topology::NearRequest> requests;
    for (const std::size_t each : members) {
      requests.push_back(all.requests[each]);
    }
    if (const auto kind = topology::commonKind(input.topology, requests, candidates)) {
      for (const std::size_t each : members) {
        all.requests[each].among = topology::ofKind(input.topology, candidates.pfs, *kind);
      }
    }
  }
}

}  // namespace

bool hasNear(const Mapping& mapping) {
  return std::ranges::any_of(mapping.vfs,
                             [](const MappedVf& entry) { return entry.pf.near.has_value(); });
}

NearResolution resolveNear(const NearInput& input) {
  NearResolution resolution{input.mapping, {}, {}};
  NearRequests all = requestsOf(input, resolution);
  const auto candidates = candidatesOf(input);
  limitLinks(input, candidates, all);
  keepRenamed(input, candidates, all);
  limitKinds(input, candidates, all);
  const auto found = topology::nearPfs(input.topology, all.requests, candidates);
  for (std::size_t i = 0; i < found.size(); ++i) {
    MappedVf& entry = *all.entries[i];
    if (const auto fault = faultOf(input, entry, found[i]); !fault.empty()) {
      resolution.faults[entry.name] = {fault, remedyOf(entry, found[i]), ExitCode::badInput};
      continue;
    }
    resolution.reasons.push_back(reasonOf(input, entry, found[i]));
    entry.pf = {};
    entry.pf.pci = input.topology.functions[*found[i].pf].address;
  }
  return resolution;
}

}  // namespace vfpass::plan
