#include <algorithm>
#include <vector>

#include "attach_decisions.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/owner_objections.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/plan/select_pf.hpp"
#include "vfpass/topology/nvlink_topology.hpp"

namespace vfpass::plan {
namespace {

// Adds a problem for GPUs that could not initialize in the guest because the mapping ignores their
// board's NVSwitches (topology::judgeNvlink). It is bad input: the mapping must state how NVLink
// is set up. Returns the functions that its remedy adds to the mapping.
std::set<PciAddress> checkNvlink(const AttachInput& input, std::vector<Objection>& objections) {
  std::set<PciAddress> added;
  const auto nvlink = topology::judgeNvlink(input.topology, input.mapping);
  for (const auto& fault : nvlink.faults) {
    objections.push_back(
        {toString(fault.place) + ": " + fault.message, fault.remedy, ExitCode::badInput});
    added.insert(fault.missing.begin(), fault.missing.end());
  }
  if (nvlink.faults.empty()) {
    checkPartition(input, objections);
  }
  return added;
}

// What one entry's problem names is no problem of the next entry in the same group or on the same
// bus: the mapping is refused anyway, and each remedy would add the function again.
void addReported(const std::vector<GroupPeer>& peers, DeviceTerms& terms) {
  for (const GroupPeer& peer : peers) {
    terms.companions.insert(peer.address);
  }
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
  const bool same = earlier != nullptr && !isVf(*earlier) && earlier->device == entry.pci;
  return same ? earlier : nullptr;
}

void judge(const AttachInput& input, const MappedFunction& entry, const Device& function,
           const Lease& lease, DeviceTerms& terms, std::vector<Objection>& objections) {
  auto found = checkFunctionKind(function, terms);
  if (found.empty()) {  // functions on its bus are usually in its IOMMU group, too
    found = checkReset(function, terms);
    addReported(function.busPeers, terms);
  }
  addReported(function.groupPeers, terms);
  const bool adopt = adopts(input, entry.adopt, entry.name, entry.pci);
  const Lease* kept = keptLease(input, entry);
  if (kept == nullptr) {
    append(checkQuarantine("PCI function " + toString(entry.pci), entry.pci,
                           input.inventory.quarantined),
           found);
    append(checkFunctionUse(function, terms,
                            adopt ? holdersExceptOwnGuest(input) : input.inventory.holders),
           found);
  }
  if (kept == nullptr && !adopt) {
    objectToPool(input, entry.pci, {}, "remove it from the network, or choose another function",
                 found);
  }
  objectToOwnVfs(input, entry, found);
  objectToLeases(input.leases, lease, "choose another function", found);
  const bool adopted = kept != nullptr && isAdopted(*kept);
  objectToClaims(input, entry.pci, "function", adopt || adopted, found);
  append(std::move(found), objections);
}

Lease leaseOf(const AttachInput& input, const MappedFunction& entry, const Device& function) {
  const Lease* kept = keptLease(input, entry);
  Lease lease = newLease(input, entry.name, kept);
  lease.pf = lease.device = entry.pci;
  lease.pfPath = function.path;
  lease.pfSerial = function.serial;
  LeasedFunction device;
  if (const std::string driver = entry.driver.value_or(function.vfioDriver); driver != "vfio-pci") {
    device.vfioDriver = driver;
  }
  lease.part = device;
  if (kept != nullptr) {
    lease.original = kept->original;
  } else {
    lease.original.driver = function.driver;
    lease.original.driverOverride = function.driverOverride;
  }
  return lease;
}

}  // namespace

std::vector<Lease> decideFunctions(const AttachInput& input, const std::vector<Lease>& vfs,
                                   Places& places, std::vector<Objection>& objections) {
  DeviceTerms terms{"",
                    devicesOf(vfs),
                    input.mapping.allow,
                    input.inventory.unsafeInterrupts,
                    entryNames(input.mapping),
                    input.inventory.iommuPresent};
  for (const auto& entry : input.mapping.functions) {
    terms.companions.insert(entry.pci);
  }
  std::vector<Objection> nvlink;
  terms.companions.merge(checkNvlink(input, nvlink));
  std::vector<Lease> leases;
  for (const auto& entry : input.mapping.functions) {
    const Device* function = findFunction(input.inventory, entry.pci);
    if (function == nullptr) {
      objections.push_back({toString(entry.place) + ": this host has no PCI function " +
                                toString(entry.pci) + " (" + entry.name + ")",
                            "list the functions with `lspci -D`", ExitCode::badInput});
      continue;
    }
    Lease lease = leaseOf(input, entry, *function);
    terms.name = entry.name;
    judge(input, entry, *function, lease, terms, objections);
    const Lease* kept = keptLease(input, entry);
    if (kept != nullptr && isAdopted(*kept)) {
      lease.adoptedElement = kept->adoptedElement;
      lease.managed = kept->managed;
      lease.guest = kept->guest;
    } else if (adopts(input, entry.adopt, entry.name, entry.pci)) {
      adoptFunction(input, entry, lease, objections);
    } else {
      places.assign(earlierLease(input, entry.name), lease, objections);
    }
    leases.push_back(std::move(lease));
  }
  append(std::move(nvlink), objections);
  recordModules(input, leases);
  for (const auto& lease : leases) {
    objectToModules(input.leases, lease, objections);
  }
  return leases;
}

}  // namespace vfpass::plan
