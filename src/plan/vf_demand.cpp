#include "vf_demand.hpp"

#include <algorithm>
#include <set>

#include "other_owners.hpp"
#include "vfpass/plan/network_pools.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

// Whether the lease is one of the mapping's VM, which is not always the VM of this attach.
bool isOf(const AttachInput& input, const Mapping& mapping, const Lease& lease) {
  return &mapping == &input.mapping
             ? lease.domain == input.domain
             : lease.domainName == mapping.vm || toString(lease.domain) == mapping.vm;
}

bool hasLease(const AttachInput& input, const Mapping& mapping, const MappedVf& entry,
              const PhysicalFunction& pf) {
  return std::ranges::any_of(input.leases, [&](const Lease& lease) {
    return isVf(lease) && lease.pf == pf.address && lease.entry == entry.name &&
           isOf(input, mapping, lease);
  });
}

/// The VFs of one PF that mappings and leases need.
struct Demand {
  std::set<unsigned> indexes;  ///< leased ones, and those that an entry names
  std::size_t automatic = 0;   ///< entries that take any VF
};

void addEntries(const AttachInput& input, const Mapping& mapping, const PhysicalFunction& pf,
                Demand& demand) {
  std::vector<Objection> raisedElsewhere;
  for (const auto& entry : mapping.vfs) {
    if (selectPf(entry.pf, mapping, input.inventory, entry.place, raisedElsewhere) != &pf) {
      continue;
    }
    if (entry.index) {
      demand.indexes.insert(*entry.index);
    } else if (!hasLease(input, mapping, entry, pf)) {
      ++demand.automatic;
    }
  }
}

Demand demandOf(const AttachInput& input, const PhysicalFunction& pf) {
  Demand demand;
  for (const auto& lease : input.leases) {
    if (isVf(lease) && lease.pf == pf.address) {
      demand.indexes.insert(vfOf(lease).index);
    }
  }
  addEntries(input, input.mapping, pf, demand);
  for (const auto& mapping : input.otherMappings) {
    addEntries(input, mapping, pf, demand);
  }
  return demand;
}

// Whether `auto` cannot take this VF, because a domain or a libvirt network claims it.
bool isClaimed(const AttachInput& input, const PhysicalFunction& pf, unsigned index) {
  const auto address = vfAddress(pf, index);
  if (!address) {
    return false;
  }
  std::vector<Objection> objections;
  objectToClaims(input, *address, "VF", objections);
  return !objections.empty() || findPool(input.pools, *address, pf.netdev) != nullptr;
}

unsigned neededVfCount(const AttachInput& input, const PhysicalFunction& pf) {
  Demand demand = demandOf(input, pf);
  for (unsigned index = 0; index < pf.totalVfs && demand.automatic > 0; ++index) {
    if (!isClaimed(input, pf, index) && demand.indexes.insert(index).second) {
      --demand.automatic;
    }
  }
  // An index that the PF cannot have is objected to where the entry chooses its VF.
  const auto beyond = demand.indexes.lower_bound(pf.totalVfs);
  return beyond == demand.indexes.begin() ? 0 : *std::prev(beyond) + 1;
}

}  // namespace

unsigned vfCountFor(const AttachInput& input, const PhysicalFunction& pf) {
  if (!pf.vfs.empty()) {
    return static_cast<unsigned>(pf.vfs.size());
  }
  const PfPolicy* policy = policyOf(pf, input.policy);
  return policy != nullptr && policy->vfCount ? *policy->vfCount : neededVfCount(input, pf);
}

}  // namespace vfpass::plan
