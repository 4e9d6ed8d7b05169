#include "choose_vf.hpp"

#include <algorithm>
#include <set>

#include "other_owners.hpp"
#include "vf_demand.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_vf.hpp"
#include "vfpass/plan/network_pools.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
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
    if (isVf(lease) && lease.pf == pf.address) {
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
  return names.empty()
             ? ""
             : "; used by " + join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

// libvirt allocates these itself, without checking whether one is in use.
void objectToPool(const AttachInput& input, const PhysicalFunction& pf, const PciAddress& address,
                  std::vector<Objection>& objections) {
  if (const NetworkPool* pool = findPool(input.pools, address, pf.netdev)) {
    objections.push_back(
        {toString(address) + " belongs to the pool of libvirt network " + printable(pool->network),
         "use another PF, or remove this one from the network"});
  }
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

std::vector<Objection> objectionsTo(const AttachInput& input, const MappedVf& entry,
                                    const PhysicalFunction& pf, unsigned index) {
  std::vector<Objection> objections;
  Lease wanted;
  wanted.domain = input.domain;
  wanted.pf = pf.address;
  vfOf(wanted).index = index;
  objectToLeases(input.leases, wanted, "choose another index", objections);
  objectToMapping(input, entry, pf, index, objections);
  if (const auto address = vfAddress(pf, index)) {
    objectToClaims(input, *address, "VF", objections);
    objectToPool(input, pf, *address, objections);
  }
  if (index < pf.vfs.size()) {
    const auto found = checkVf(pf.vfs[index], input.mapping.allow, input.inventory.unsafeInterrupts,
                               input.inventory.holders);
    objections.insert(objections.end(), found.begin(), found.end());
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
  auto found = objectionsTo(input, entry, pf, index);
  if (taken.contains(index)) {
    found.push_back({toString(entry.place) + ": " + entry.name + " requests VF " +
                         std::to_string(index) + ", which another entry of the mapping uses",
                     "choose another index for one of them, or `auto`", ExitCode::badInput});
  }
  objections.insert(objections.end(), found.begin(), found.end());
  return found.empty() ? std::optional(index) : std::nullopt;
}

}  // namespace

std::optional<unsigned> chooseVf(const AttachInput& input, const MappedVf& entry,
                                 const PhysicalFunction& pf, const std::set<unsigned>& taken,
                                 std::vector<Objection>& objections) {
  if (entry.index) {
    return chooseNamed(input, entry, pf, taken, objections);
  }
  const unsigned count = vfCountFor(input, pf);
  std::vector<Objection> last;
  for (unsigned index = 0; index < count; ++index) {
    if (taken.contains(index)) {
      continue;
    }
    auto found = objectionsTo(input, entry, pf, index);
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
