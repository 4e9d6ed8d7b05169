#include "vfpass/plan/plan_detach.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "device_steps.hpp"
#include "host_policy_objections.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/owner_objections.hpp"

namespace vfpass::plan {
namespace {

bool isInUse(const VirtualFunction& vf, const std::vector<Holder>& holders) {
  return isVfioDriver(vf.driver) || !objectToHolders(vf.address, holders, {}).empty();
}

// Writing 0 to sriov_numvfs removes every VF of a PF. Allowed only with the last lease, only if
// vfpass created the VFs, and only if no other VF is in use. A domain keeps its own element for an
// adopted VF.
bool isLastUse(const PhysicalFunction& pf, const std::vector<Lease>& leases,
               const OtherVfUsers& others) {
  const bool ours = std::ranges::all_of(
      leases, [](const Lease& lease) { return lease.original.created && !isAdopted(lease); });
  const bool leased = std::ranges::any_of(others.leases, [&](const Lease& lease) {
    const Lease* ended = findLease(leases, lease.domain, lease.entry);
    // An entry that moves to another VF ends with its old device only.
    return lease.pf == pf.address && (ended == nullptr || ended->device != lease.device);
  });
  const bool used = std::ranges::any_of(pf.vfs, [&](const VirtualFunction& vf) {
    const bool leasedHere = std::ranges::any_of(
        leases, [&](const Lease& lease) { return vfOf(lease).index == vf.index; });
    return !leasedHere && isInUse(vf, others.holders);
  });
  return !pf.vfs.empty() && ours && !leased && !used;
}

// libvirt refuses to start a domain whose hostdev does not exist. The domain's own elements of
// vfpass end with its leases; on isLastUse() no other domain has one that a lease explains.
std::vector<DeviceUser> usersByDefinition(const PhysicalFunction& pf,
                                          const std::vector<Lease>& leases,
                                          const Definitions& definitions) {
  std::vector<DomainSummary> domains = definitions.domains;
  for (DomainSummary& domain : domains) {
    if (domain.uuid == leases.front().domain) {
      std::erase_if(domain.claims, [](const Claim& claim) { return isOurAlias(claim.alias); });
    }
  }
  return definedUsers(pf, domains, definitions.pools, {});
}

// Empty: nothing keeps them.
std::string reasonToKeepVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                            const Definitions& definitions) {
  if (const auto users = usersByDefinition(pf, leases, definitions); !users.empty()) {
    return nameDefinedUsers(pf, users);
  }
  return definitions.unknown.empty() ? "" : describeUnknown(definitions.unknown);
}

}  // namespace

std::optional<Step> removalOfVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                 const OtherVfUsers& others) {
  if (!isLastUse(pf, leases, others) || !reasonToKeepVfs(pf, leases, others.definitions).empty()) {
    return std::nullopt;
  }
  return Step{
      RemoveVfs{pf.address}, {}, "the PF had no VFs before, and no lease needs them any more"};
}

std::string noteOnKeptVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                          const OtherVfUsers& others) {
  const std::string reason =
      isLastUse(pf, leases, others) ? reasonToKeepVfs(pf, leases, others.definitions) : "";
  return reason.empty() ? "" : nameOf(pf) + " keeps its VFs: " + reason;
}

namespace {

void restoreBinding(const Lease& lease, const VirtualFunction& vf, bool removed,
                    std::vector<Step>& steps) {
  if (lease.managed) {
    return;  // libvirt has rebound the device itself
  }
  const auto migratable = migrates(lease) ? lease.original.migratable : std::nullopt;
  BindDriver bind{vf.address, lease.original.driver, lease.original.driverOverride, migratable};
  if (removed) {
    bind = {vf.address, "", ""};
  }
  const bool changesFirmware = bind.migratable && bind.migratable != vf.migratable;
  if (changesFirmware || bind.driver != vf.driver || bind.driverOverride != vf.driverOverride) {
    steps.push_back({bind,
                     {bindingOf(lease, vf)},
                     "this was its driver before " + lease.entry + " was attached"});
  }
}

// VFs that are removed need no values and no driver.
void restorePf(const PhysicalFunction& pf, const std::vector<Lease>& leases, bool removed,
               std::vector<Step>& steps) {
  // Reset, and the values from before the lease: in one step for all VFs of the PF.
  ConfigureVfs configure{pf.address, {}};
  ConfigureVfs undo{pf.address, {}};
  std::vector<Step> afterwards;
  std::vector<Step> bindings;
  for (const auto& lease : leases) {
    if (vfOf(lease).index >= pf.vfs.size()) {
      continue;
    }
    const VirtualFunction& vf = pf.vfs[vfOf(lease).index];
    Reprobe reprobe;
    if (lease.state != LeaseState::reserved && isVfioDriver(vf.driver)) {
      steps.push_back({ResetFunction{vf.address}, {}, "it was not reset after its last use"});
    }
    if (const VfSettings restored = settingsToRestore(lease); restored != VfSettings{}) {
      configure.vfs.push_back({vfOf(lease).index, restored, {}});
      undo.vfs.push_back(
          {vfOf(lease).index, only(vf.settings, differingAttributes(restored, {})), {}});
    }
    if (!removed) {
      reprobe = reprobeAround(lease, vf, settingsToRestore(lease));
      steps.insert(steps.end(), reprobe.before.begin(), reprobe.before.end());
      afterwards.insert(afterwards.end(), reprobe.after.begin(), reprobe.after.end());
    }
    restoreBinding(lease, reprobe.between(vf), removed, bindings);
  }
  if (!removed && !configure.vfs.empty()) {
    steps.push_back({configure, {undo}, "these were the values before the attach"});
  }
  steps.insert(steps.end(), afterwards.begin(), afterwards.end());
  // Bind the driver last: it reads the MAC when it probes.
  steps.insert(steps.end(), bindings.begin(), bindings.end());
}

std::string notRestored(const Lease& lease, const std::string& reason) {
  return lease.entry + ": " + describeDevice(lease) + " was not restored: " + reason;
}

// Adds a note if the card differs.
bool isSameCard(const Lease& lease, const Inventory& inventory, std::vector<std::string>& notes) {
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  const std::string other = pf == nullptr ? "the PF no longer exists" : otherDevice(lease, *pf);
  if (!other.empty()) {
    notes.push_back(notRestored(lease, other));
  }
  return other.empty();
}

void restoreWholeFunction(const Lease& lease, const Inventory& inventory,
                          Restoration& restoration) {
  const Device* function = findFunction(inventory, lease.device);
  const std::string other =
      function == nullptr ? "the function no longer exists" : otherDevice(lease, *function);
  if (!other.empty()) {
    restoration.notes.push_back(notRestored(lease, other));
    return;
  }
  restoreFunction(lease, inventory, restoration.steps);
}

}  // namespace

std::vector<std::string> notesOnKeptVfs(const std::vector<Lease>& leases,
                                        const std::vector<Lease>& allLeases,
                                        const Inventory& inventory,
                                        const Definitions& definitions) {
  std::map<PciAddress, std::vector<Lease>> byPf;
  for (const Lease& lease : leases) {
    const PhysicalFunction* pf = findPf(inventory, lease);
    if (pf != nullptr && otherDevice(lease, *pf).empty()) {
      byPf[lease.pf].push_back(lease);
    }
  }
  std::vector<std::string> notes;
  for (const auto& [address, ended] : byPf) {
    const std::string note = noteOnKeptVfs(*findPf(inventory, address), ended,
                                           {allLeases, inventory.holders, definitions});
    if (!note.empty()) {
      notes.push_back(note);
    }
  }
  return notes;
}

namespace {

HandedOver handedOver(const Lease& lease) {
  return {lease.domainName, lease.device, vfIndexOf(lease), isInfinibandVf(lease)};
}

}  // namespace

Restoration planRestore(const std::vector<Lease>& leases, const std::vector<Lease>& allLeases,
                        const Inventory& inventory, const Definitions& definitions) {
  std::map<PciAddress, std::vector<Lease>> byPf;
  Restoration restoration;
  std::vector<Lease> used = leases;
  std::erase_if(used, [](const Lease& lease) { return lease.state == LeaseState::reserved; });
  setPartition(used, false, "it was not deactivated after its last use", restoration.steps);
  for (const auto& lease : leases) {
    if (!isVf(lease)) {
      restoreWholeFunction(lease, inventory, restoration);
    } else if (isSameCard(lease, inventory, restoration.notes)) {
      byPf[lease.pf].push_back(lease);
    }
  }
  std::vector<Step> removals;
  for (const auto& [address, pfLeases] : byPf) {
    const PhysicalFunction& pf = *findPf(inventory, address);
    const auto removal = removalOfVfs(pf, pfLeases, {allLeases, inventory.holders, definitions});
    restorePf(pf, pfLeases, removal.has_value(), restoration.steps);
    if (removal) {
      removals.push_back(*removal);
    }
  }
  std::ranges::move(notesOnKeptVfs(leases, allLeases, inventory, definitions),
                    std::back_inserter(restoration.notes));
  for (const auto& lease : leases) {
    restoration.steps.push_back(
        {DropLease{lease.domain, lease.entry, lease.generation, lease.pf, handedOver(lease)},
         {},
         isAdopted(lease) ? "its element belongs to the domain" : "its device is detached"});
  }
  // After the records of the leases, which read attributes and error counters of the VFs.
  std::ranges::move(removals, std::back_inserter(restoration.steps));
  return restoration;
}

namespace {

bool isPlugged(const DetachInput& input, const Lease& lease) {
  return input.plugged.contains(lease.entry);
}

// What detach does with the domain's leases.
struct LeaseOutcomes {
  std::vector<Lease> unplugged;  ///< to unplug from the running guest
  std::vector<Lease> ended;      ///< in neither configuration any more
  std::vector<Lease> reserved;   ///< unplugged, but still in the persistent configuration
  std::vector<Lease> liveOnly;   ///< removed from the persistent configuration, but still plugged
  std::vector<Lease> left;       ///< ended, while the domain keeps the device
};

LeaseOutcomes outcomesOf(const DetachInput& input) {
  LeaseOutcomes outcomes;
  for (const auto& lease : input.leases) {
    if (lease.domain != input.domain) {
      continue;
    }
    const bool plugged = isPlugged(input, lease);
    if (input.keep || (plugged && isAdopted(lease))) {
      outcomes.left.push_back(lease);
      continue;
    }
    const bool staysLive = plugged && !input.scope.live;
    const bool staysConfigured = lease.persistent && !input.scope.config;
    if (plugged && input.scope.live) {
      outcomes.unplugged.push_back(lease);
    }
    if (!staysLive && !staysConfigured) {
      outcomes.ended.push_back(lease);
    } else if (staysConfigured && input.scope.live && lease.state != LeaseState::reserved) {
      outcomes.reserved.push_back(lease);
    } else if (staysLive && lease.persistent && input.scope.config) {
      outcomes.liveOnly.push_back(lease);
    }
  }
  return outcomes;
}

void addUnplugging(const DetachInput& input, const LeaseOutcomes& outcomes,
                   std::vector<Step>& steps) {
  for (const auto& lease : outcomes.unplugged) {
    steps.push_back({UnplugDevice{lease}, {PlugDevice{lease}}, "the running guest has it", true});
  }
  // The guest may already have released the devices that an earlier detach requested.
  if (!outcomes.unplugged.empty() || (input.scope.live && !input.liveLeases.empty())) {
    steps.push_back({EditLiveMetadata{input.domain, {}},
                     {EditLiveMetadata{input.domain, input.liveLeases}},
                     "the running domain has no devices of vfpass any more"});
  }
}

void addXml(const DetachInput& input, std::vector<Step>& steps) {
  if (!input.scope.config || !input.xmlIsOurs) {
    return;
  }
  const auto leases = persistentLeases(input.leases, input.domain);
  steps.push_back({EditDomain{input.domain, {}, input.keep ? leases : std::vector<Lease>{}},
                   {EditDomain{input.domain, leases}},
                   input.keep ? "libvirt gives the devices to the guest from now on"
                              : "this was the XML before the attach"});
}

// Between two runs a VF has neutral values; the next start has no lease that would set its own.
void addKeptSettings(const DetachInput& input, const LeaseOutcomes& outcomes,
                     std::vector<Step>& steps) {
  std::map<PciAddress, std::pair<ConfigureVfs, ConfigureVfs>> byPf;
  for (const auto& lease : outcomes.left) {
    const VirtualFunction* vf = findVf(input.inventory, lease);
    if (!input.keep || vf == nullptr || isPlugged(input, lease)) {
      continue;
    }
    auto& [configure, undo] = byPf[lease.pf];
    configure.pf = undo.pf = lease.pf;
    addChange(lease, vf->settings, configure, undo);
  }
  for (const auto& [pf, actions] : byPf) {
    if (!actions.first.vfs.empty()) {
      steps.push_back({actions.first, {actions.second}, "the guest has had these values"});
    }
  }
}

void addLeft(const DetachInput& input, const LeaseOutcomes& outcomes, Plan& plan) {
  for (const auto& lease : outcomes.left) {
    const VirtualFunction* vf = findVf(input.inventory, lease);
    if (!input.keep && vf != nullptr &&
        !differingAttributes(settingsToRestore(lease), vf->settings).empty()) {
      plan.notes.push_back(lease.entry + ": " + describeDevice(lease) +
                           " keeps its present settings: the running guest has it");
    }
    plan.steps.push_back({DropLease{lease.domain, lease.entry, lease.generation, lease.pf},
                          {},
                          "the domain keeps its device"});
  }
}

void addRecords(const LeaseOutcomes& outcomes, std::vector<Step>& steps) {
  for (Lease lease : outcomes.liveOnly) {
    lease.persistent = false;
    steps.push_back({RecordLease{lease}, {}, "the running guest still has it"});
  }
}

}  // namespace

Plan planDetach(const DetachInput& input) {
  Plan plan{PlanKind::detach, input.domain, input.domainName, {}, {}};
  const LeaseOutcomes outcomes = outcomesOf(input);
  auto& steps = plan.steps;
  addUnplugging(input, outcomes, steps);
  addKeptSettings(input, outcomes, steps);
  addXml(input, steps);
  addRecords(outcomes, steps);
  const std::string bootId = outcomes.reserved.empty() ? "" : outcomes.reserved.front().bootId;
  const auto reset = stepsBetweenRuns(outcomes.reserved, input.inventory, bootId,
                                      "its persistent configuration has it");
  const Restoration restore =
      planRestore(outcomes.ended, input.leases, input.inventory, input.definitions);
  steps.insert(steps.end(), reset.begin(), reset.end());
  steps.insert(steps.end(), restore.steps.begin(), restore.steps.end());
  plan.notes = restore.notes;
  addLeft(input, outcomes, plan);
  return plan;
}

}  // namespace vfpass::plan
