#include "attach_decisions.hpp"

#include <algorithm>
#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/owner_objections.hpp"
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
    return isVfOf(lease, pf.address) && lease.entry == entry.name && isOf(input, mapping, lease);
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
    if (isVfOf(lease, pf.address)) {
      demand.indexes.insert(vfOf(lease).index);
    }
  }
  addEntries(input, input.mapping, pf, demand);
  for (const auto& mapping : input.otherMappings) {
    addEntries(input, mapping, pf, demand);
  }
  return demand;
}

// Whether `auto` cannot take this VF, because a domain or a libvirt network claims it, or because
// it is in quarantine.
bool isClaimed(const AttachInput& input, const PhysicalFunction& pf, unsigned index) {
  const auto address = vfAddress(pf, index);
  if (!address) {
    return false;
  }
  std::vector<Objection> objections;
  objectToClaims(input, *address, "VF", false, objections);
  append(checkQuarantine("", *address, input.inventory.quarantined), objections);
  return !objections.empty() || findPool(input.pools, *address, pf.netdev()) != nullptr;
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

namespace {

// The kernel changes a count only by way of 0, for which no VF may be in use.
std::string raiseCount(const AttachInput& input, const PhysicalFunction& pf, unsigned wanted) {
  if (wanted > pf.totalVfs) {
    return "raise the limit in the NIC's firmware, which `vfpass doctor` explains (vf-count)";
  }
  const PfPolicy* policy = policyOf(pf, input.policy);
  const bool requested = policy != nullptr && policy->vfCount && *policy->vfCount >= wanted;
  const std::string set = requested ? ""
                                    : "set virtual-function-count for this PF in host.yaml (" +
                                          std::to_string(wanted) + " to " +
                                          std::to_string(pf.totalVfs) + "), ";
  return pf.vfs.empty() ? set + "then attach again"
                        : set +
                              "shut down and `vfpass detach` the VMs that use its VFs, run "
                              "`vfpass host apply`, then attach all of them again";
}

// Who has the PF's VFs: domains with leases or with elements of their own.
std::string usersOf(const AttachInput& input, const PhysicalFunction& pf) {
  std::set<std::string> names;
  for (const auto& lease : input.leases) {
    if (isVfOf(lease, pf.address)) {
      names.insert(printable(lease.domainName));
    }
  }
  for (const auto& domain : input.domains) {
    const auto isOfPf = [&](const Claim& claim) {
      return std::ranges::find(pf.vfs, claim.device, &VirtualFunction::address) != pf.vfs.end();
    };
    if (std::ranges::any_of(domain.claims, isOfPf)) {
      names.insert(printable(domain.name));
    }
  }
  return names.empty() ? "" : "; used by " + joinFirst({names.begin(), names.end()});
}

// A mapping that names a VF by index reserves it, even before it is attached.
void objectToMapping(const AttachInput& input, const MappedVf& entry, const PhysicalFunction& pf,
                     unsigned index, std::vector<Objection>& objections) {
  std::vector<Objection> ignored;
  for (const auto& mapping : input.otherMappings) {
    for (const auto& other : mapping.vfs) {
      if (other.index == index &&
          selectPf(other.pf, mapping, input.inventory, other.place, ignored) == &pf) {
        objections.push_back({toString(entry.place) + ": VF " + std::to_string(index) + " of PF " +
                                  toString(pf.address) + " is also claimed by VM " +
                                  printable(mapping.vm) + " at " + toString(other.place),
                              "choose another index for one of them, or `auto`",
                              ExitCode::badInput});
      }
    }
  }
}

// The devices of this mapping that are known before each entry has its VF: the functions, and VFs
// of this PF that other entries have or name.
std::set<PciAddress> companionsOn(const AttachInput& input, const PhysicalFunction& pf,
                                  std::set<unsigned> indexes) {
  std::set<PciAddress> companions;
  for (const auto& function : input.mapping.functions) {
    companions.insert(function.pci);
  }
  std::vector<Objection> raisedThere;
  for (const auto& entry : input.mapping.vfs) {
    if (entry.index &&
        selectPf(entry.pf, input.mapping, input.inventory, entry.place, raisedThere) == &pf) {
      indexes.insert(*entry.index);
    }
  }
  for (const unsigned index : indexes) {
    if (const auto address = vfAddress(pf, index)) {
      companions.insert(*address);
    }
  }
  return companions;
}

std::vector<Objection> objectionsTo(const AttachInput& input, const MappedVf& entry,
                                    const PhysicalFunction& pf, unsigned index,
                                    const std::set<unsigned>& taken) {
  std::vector<Objection> objections;
  Lease wanted;
  wanted.domain = input.domain;
  wanted.pf = pf.address;
  vfOf(wanted).index = index;
  objectToLeases(input.leases, wanted, "choose another index", objections);
  objectToMapping(input, entry, pf, index, objections);
  if (const auto address = vfAddress(pf, index)) {
    append(checkQuarantine("VF " + std::to_string(index) + " (" + toString(*address) + ")",
                           *address, input.inventory.quarantined),
           objections);
    objectToClaims(input, *address, "VF", entry.adopt, objections);
    if (!entry.adopt) {
      objectToPool(input, *address, pf.netdev(),
                   "use another PF, or remove this one from the network", objections);
    }
  }
  if (index < pf.vfs.size()) {
    const DeviceTerms terms{
        "", companionsOn(input, pf, taken), input.mapping.allow, input.inventory.unsafeInterrupts,
        {}, input.inventory.iommuPresent};
    append(checkVf(pf.vfs[index], terms,
                   entry.adopt ? holdersExceptOwnGuest(input) : input.inventory.holders),
           objections);
  }
  return objections;
}

std::optional<unsigned> chooseNamed(const AttachInput& input, const MappedVf& entry,
                                    const PhysicalFunction& pf, const std::set<unsigned>& taken,
                                    std::vector<Objection>& objections) {
  const unsigned index = *entry.index;
  const unsigned count = vfCountFor(input, pf);
  if (index >= count) {
    objections.push_back(
        {toString(entry.place) + ": " + entry.name + " requests VF " + std::to_string(index) +
             ", but PF " + toString(pf.address) + " has " + std::to_string(count) +
             " VFs (at most " + std::to_string(pf.totalVfs) + "), numbered from 0",
         index < pf.totalVfs ? raiseCount(input, pf, index + 1)
                             : "choose an index below " + std::to_string(pf.totalVfs),
         ExitCode::badInput});
    return std::nullopt;
  }
  auto found = objectionsTo(input, entry, pf, index, taken);
  if (taken.contains(index)) {
    found.push_back({toString(entry.place) + ": " + entry.name + " requests VF " +
                         std::to_string(index) + ", which another entry of the mapping uses",
                     "choose another index for one of them, or `auto`", ExitCode::badInput});
  }
  const bool free = found.empty();
  append(std::move(found), objections);
  return free ? std::optional(index) : std::nullopt;
}

}  // namespace

std::optional<unsigned> chooseVf(const AttachInput& input, const MappedVf& entry,
                                 const PhysicalFunction& pf, const std::set<unsigned>& taken,
                                 std::vector<Objection>& objections) {
  auto quarantined = checkQuarantine(toString(entry.place) + ": PF " + toString(pf.address),
                                     pf.address, input.inventory.quarantined);
  if (!quarantined.empty()) {
    append(std::move(quarantined), objections);
    return std::nullopt;
  }
  if (entry.index) {
    return chooseNamed(input, entry, pf, taken, objections);
  }
  const unsigned count = vfCountFor(input, pf);
  std::vector<Objection> last;
  for (unsigned index = 0; index < count; ++index) {
    if (taken.contains(index)) {
      continue;
    }
    auto found = objectionsTo(input, entry, pf, index, taken);
    if (found.empty()) {
      return index;
    }
    last = std::move(found);
  }
  objections.push_back({toString(entry.place) + ": no free VF on PF " + toString(pf.address) +
                            " for " + entry.name + " (" + std::to_string(count) + " of " +
                            std::to_string(pf.totalVfs) + " possible VFs)" + usersOf(input, pf) +
                            (last.empty() ? "" : "; the last one: " + last.front().message),
                        "detach another VM, or " + raiseCount(input, pf, count + 1)});
  return std::nullopt;
}

}  // namespace vfpass::plan
