#include "decide_function.hpp"

#include <algorithm>

#include "check_nvlink.hpp"
#include "decide_lease.hpp"
#include "other_owners.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/plan/network_pools.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

void objectToPool(const AttachInput& input, const PciAddress& address,
                  std::vector<Objection>& objections) {
  if (const NetworkPool* pool = findPool(input.pools, address, {})) {
    objections.push_back(
        {toString(address) + " belongs to the pool of libvirt network " + printable(pool->network),
         "remove it from the network, or choose another function"});
  }
}

std::set<std::string> entryNames(const Mapping& mapping) {
  std::set<std::string> names;
  for (const auto& vf : mapping.vfs) {
    names.insert(vf.name);
  }
  for (const auto& gpu : mapping.functions) {
    names.insert(gpu.name);
  }
  return names;
}

// A PF and its VFs cannot be passed through at the same time.
void objectToOwnVfs(const AttachInput& input, const MappedFunction& entry,
                    std::vector<Objection>& objections) {
  std::vector<Objection> raisedThere;
  for (const auto& vf : input.mapping.vfs) {
    const auto* pf = selectPf(vf.pf, input.mapping, input.inventory, vf.place, raisedThere);
    if (pf != nullptr && pf->address == entry.pci) {
      objections.push_back({toString(entry.place) + ": " + toString(entry.pci) + " of " +
                                entry.name + " is the PF of " + vf.name,
                            "remove one of the two entries", ExitCode::badInput});
    }
  }
}

// The earlier lease if it is for the same function; its use was checked when it was made.
const Lease* keptLease(const AttachInput& input, const MappedFunction& entry) {
  const Lease* earlier = earlierLease(input, entry.name);
  const bool same = earlier != nullptr && !isVf(*earlier) && earlier->vf == entry.pci;
  return same ? earlier : nullptr;
}

void judge(const AttachInput& input, const MappedFunction& entry, const PciFunction& function,
           const Lease& lease, std::vector<Objection>& objections) {
  const auto named = namedFunctions({}, input.mapping.functions);
  const FunctionTerms terms{entry.name,
                            {named.begin(), named.end()},
                            input.mapping.allow,
                            input.inventory.unsafeInterrupts,
                            entryNames(input.mapping)};
  auto found = checkFunctionKind(function, terms);
  if (found.empty()) {  // functions on its bus are usually in its IOMMU group, too
    found = checkReset(function, terms);
  }
  if (keptLease(input, entry) == nullptr) {
    const auto used = checkFunctionUse(function, terms, input.inventory.holders);
    found.insert(found.end(), used.begin(), used.end());
    objectToPool(input, entry.pci, found);
  }
  objectToOwnVfs(input, entry, found);
  objectToLeases(input.leases, lease, "choose another function", found);
  objectToClaims(input, entry.pci, "function", found);
  objections.insert(objections.end(), found.begin(), found.end());
}

Lease leaseOf(const AttachInput& input, const MappedFunction& entry, const PciFunction& function) {
  Lease lease;
  lease.domain = input.domain;
  lease.domainName = input.domainName;
  lease.entry = entry.name;
  lease.pf = lease.vf = entry.pci;
  lease.pfPath = function.path;
  lease.pfSerial = function.serial;
  lease.allow = input.mapping.allow;
  LeasedFunction device;
  if (const std::string driver = entry.driver.value_or(function.vfioDriver); driver != "vfio-pci") {
    device.vfioDriver = driver;
  }
  lease.device = device;
  lease.original.driver = function.driver;
  lease.original.driverOverride = function.driverOverride;
  const Lease* kept = keptLease(input, entry);
  if (kept != nullptr) {
    lease.original = kept->original;
  }
  const Lease* earlier = earlierLease(input, entry.name);
  lease.persistent = input.scope.config || (earlier != nullptr && earlier->persistent);
  lease.state = input.active && kept != nullptr ? kept->state : LeaseState::reserved;
  lease.generation = input.generation;
  lease.bootId = input.bootId;
  return lease;
}

}  // namespace

std::vector<Lease> decideFunctions(const AttachInput& input, Places& places,
                                   std::vector<Objection>& objections) {
  std::vector<Lease> leases;
  for (const auto& entry : input.mapping.functions) {
    const PciFunction* function = findFunction(input.inventory, entry.pci);
    if (function == nullptr) {
      objections.push_back({toString(entry.place) + ": this host has no PCI function " +
                                toString(entry.pci) + " (" + entry.name + ")",
                            "list the functions with `lspci -D`", ExitCode::badInput});
      continue;
    }
    Lease lease = leaseOf(input, entry, *function);
    judge(input, entry, *function, lease, objections);
    places.assign(earlierLease(input, entry.name), lease, objections);
    leases.push_back(std::move(lease));
  }
  checkNvlink(input, objections);
  return leases;
}

}  // namespace vfpass::plan
