#include "choose_vf.hpp"

#include <algorithm>

#include "other_owners.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_vf.hpp"
#include "vfpass/plan/network_pools.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

unsigned vfCountOf(const AttachInput& input, const PhysicalFunction& pf) {
  return pf.vfs.empty() ? wantedVfCount(pf, input.policy) : static_cast<unsigned>(pf.vfs.size());
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
  const unsigned count = vfCountOf(input, pf);
  if (index >= count) {
    objections.push_back(
        {toString(entry.place) + ": " + entry.name + " requests VF " + std::to_string(index) +
             ", but PF " + toString(pf.address) + " has " + std::to_string(count) +
             " VFs (at most " + std::to_string(pf.totalVfs) + "), numbered from 0",
         index < pf.totalVfs
             ? "raise virtual-function-count in host.yaml and run `vfpass host apply`"
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
  const unsigned count = vfCountOf(input, pf);
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
                            " for " + entry.name + " (" + std::to_string(count) + " VFs)" +
                            (last.empty() ? "" : "; the last one: " + last.front().message),
                        "detach another VM, or raise virtual-function-count in host.yaml"});
  return std::nullopt;
}

}  // namespace vfpass::plan
