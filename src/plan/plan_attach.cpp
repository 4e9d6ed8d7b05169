#include "vfpass/plan/plan_attach.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "attach_decisions.hpp"
#include "device_steps.hpp"
#include "plan_vf_creation.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/judge_confidential_guest.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

void addRecords(const AttachInput& input, const LeaseChanges& changes, std::vector<Step>& steps) {
  dropRenamed(input, steps);
  for (const auto& lease : changes.renamed) {
    steps.push_back({RecordLease{lease},
                     {DropLease{lease.domain, lease.entry, lease.generation, lease.pf}},
                     "the same device was leased as " + input.renamed.at(lease.entry)});
  }
  for (const auto& lease : changes.put) {
    const Lease* earlier = earlierLease(input, lease.entry);
    Action undo = DropLease{lease.domain, lease.entry, lease.generation, lease.pf};
    std::string reason = "no other domain may use it";
    if (earlier != nullptr && !input.renamed.contains(lease.entry)) {
      undo = RecordLease{*earlier};
      reason = sameTerms(*earlier, lease) ? "the running domain gets the device"
                                          : "it differs from the mapping";
    }
    steps.push_back({RecordLease{lease}, {undo}, reason});
  }
}

// Numbers of VFs to create, by PF.
std::map<PciAddress, unsigned> creationsFor(const AttachInput& input, const LeaseChanges& changes) {
  std::map<PciAddress, unsigned> counts;
  for (const auto& lease : changes.put) {
    const PhysicalFunction* pf = findPf(input.inventory, lease);
    if (pf != nullptr && pf->vfs.empty()) {
      counts[lease.pf] = vfCountFor(input, *pf);
    }
  }
  return counts;
}

void checkCreations(const AttachInput& input, const LeaseChanges& changes,
                    std::vector<Objection>& objections) {
  for (const auto& [pf, count] : creationsFor(input, changes)) {
    if (auto objection = objectToCreation(*findPf(input.inventory, pf), input.mapping.allow)) {
      objections.push_back(std::move(*objection));
    }
  }
}

void addCreations(const AttachInput& input, const LeaseChanges& changes, std::vector<Step>& steps) {
  for (const auto& [pf, count] : creationsFor(input, changes)) {
    const PfPolicy* policy = policyOf(*findPf(input.inventory, pf), input.policy);
    const auto disrupted = disruptionsOf(*findPf(input.inventory, pf));
    steps.push_back({CreateVfs{pf, count, policy != nullptr && policy->probeVfs, std::nullopt,
                               lagDevicePf(*findPf(input.inventory, pf))},
                     {RemoveVfs{pf, findPf(input.inventory, pf)->probesVfs}},
                     policy != nullptr && policy->vfCount
                         ? "the PF has no VFs, and host.yaml requests " + std::to_string(count)
                         : "the PF has no VFs, and the mappings of this host need " +
                               std::to_string(count) +
                               "; virtual-function-count in host.yaml can request more",
                     !disrupted.empty()});
    for (const auto& who : disrupted) {
      steps.back().reason += "; " + who;
    }
  }
}

// Its driver must stay bound: unbinding waits until QEMU closes the device.
bool isInGuest(const AttachInput& input, const Lease& lease) {
  return input.active && input.plugged.contains(lease.entry);
}

// Around a change of the target's values, on a VF that exists or that this plan creates.
Reprobe reprobeFor(const AttachInput& input, const Lease& target) {
  if (isInGuest(input, target)) {
    return {};
  }
  if (const VirtualFunction* vf = findVf(input.inventory, target)) {
    return reprobeAround(target, *vf, settingsToApply(target));
  }
  const PhysicalFunction* pf = findPf(input.inventory, target.pf);
  const PfPolicy* policy = pf == nullptr ? nullptr : policyOf(*pf, input.policy);
  return policy != nullptr && policy->probeVfs ? reprobeNew(target, *pf) : Reprobe{};
}

// The lease of a VF with the values that the VF gets.
Lease targetOf(const AttachInput& input, const Lease& lease) {
  const VirtualFunction* vf = findVf(input.inventory, lease);
  const Lease* earlier = earlierLease(input, lease.entry);
  // A running guest keeps what the lease does not state.
  const bool plugged = input.scope.live && input.plugged.contains(lease.entry);
  Lease kept = earlier == nullptr ? lease : withoutEarlierSettings(*earlier, lease);
  if (isInGuest(input, lease)) {
    VfSettings& settings = vfOf(kept).settings;
    const auto unbound = changing(settings, Change::unbound);
    settings = without(settings, {unbound.begin(), unbound.end()});
  }
  return plugged ? kept : withoutLeftOvers(kept, vf == nullptr ? VfSettings{} : vf->settings);
}

void addConfigurations(const AttachInput& input, const LeaseChanges& changes,
                       std::vector<Step>& steps) {
  // The values of the VFs of one PF, and those that roll them back, are set in one step each.
  std::map<PciAddress, std::pair<ConfigureVfs, ConfigureVfs>> byPf;
  std::vector<Step> afterwards;
  std::vector<Lease> configured = vfLeases(changes.put);
  const std::vector<Lease> drifted = vfLeases(changes.drifted);
  configured.insert(configured.end(), drifted.begin(), drifted.end());
  for (const auto& lease : configured) {
    auto& [configure, undo] = byPf[lease.pf];
    const VirtualFunction* vf = findVf(input.inventory, lease);
    const VfSettings seen = vf == nullptr ? VfSettings{} : vf->settings;
    configure.pf = undo.pf = lease.pf;
    const Lease target = targetOf(input, lease);
    const Reprobe reprobe = reprobeFor(input, target);
    steps.insert(steps.end(), reprobe.before.begin(), reprobe.before.end());
    afterwards.insert(afterwards.end(), reprobe.after.begin(), reprobe.after.end());
    addChange(target, seen, configure, undo);
  }
  // VFs that this plan creates get neutral values for everything else.
  for (auto& [pf, actions] : byPf) {
    const PhysicalFunction* found = findPf(input.inventory, pf);
    if (found != nullptr && found->vfs.empty()) {
      actions.first.otherwise =
          newVfSettings(*found, probesNewVfs(*found, input.policy), configured);
    }
    if (found != nullptr && !probesNewVfs(*found, input.policy)) {
      addVectorsOfOthers(*found, vfCountFor(input, *found), input.leases, input.domain,
                         actions.first, actions.second);
    }
    if (!actions.first.vfs.empty()) {
      steps.push_back({actions.first, {actions.second}, "the mapping sets these values"});
    }
  }
  steps.insert(steps.end(), afterwards.begin(), afterwards.end());
}

void addBindings(const AttachInput& input, const LeaseChanges& changes, std::vector<Step>& steps) {
  for (const auto& lease : changes.put) {
    if (isAdopted(lease) && isInGuest(input, lease)) {
      continue;
    }
    if (!isVf(lease)) {
      bindFunction(lease, input.inventory, steps);
      continue;
    }
    const VirtualFunction* vf = findVf(input.inventory, lease);
    const std::string driver = vf == nullptr ? "" : vf->driver;
    if (vf == nullptr) {
      bindVf(lease, nullptr, reasonToBind(driver), false, steps);
      continue;
    }
    VirtualFunction between = reprobeFor(input, targetOf(input, lease)).between(*vf);
    if (isInGuest(input, lease)) {
      between.migratable.reset();  // its next start makes it migratable
    }
    bindVf(lease, &between, reasonToBind(driver), !driver.empty(), steps);
  }
}

void addXml(const AttachInput& input, const std::vector<Lease>& wanted, const LeaseChanges& changes,
            std::vector<Step>& steps) {
  if (input.scope.config && (changes.terms || !input.xmlCurrent)) {
    const auto leases = persistentLeases(wanted, input.domain);
    steps.push_back({EditDomain{input.domain, leases},
                     {EditDomain{input.domain, persistentLeases(asRecorded(input), input.domain)}},
                     std::ranges::all_of(leases, isAdopted)
                         ? "at each start the hook prepares the devices listed there"
                         : "the guest gets the devices at its next start"});
  }
}

// The metadata come before the devices, so that a domain that stops in between is still released.
void addPlugging(const AttachInput& input, const std::vector<Lease>& wanted,
                 const LeaseChanges& changes, std::vector<Step>& steps) {
  if (!input.scope.live || (changes.put.empty() && changes.dropped.empty() && input.liveCurrent)) {
    return;
  }
  steps.push_back({EditLiveMetadata{input.domain, wanted},
                   {EditLiveMetadata{input.domain, input.liveLeases}},
                   "at shutdown the hook releases the leases listed there"});
  for (const auto& lease : changes.plugged) {
    steps.push_back({PlugDevice{lease}, {UnplugDevice{lease}}, "the guest is running"});
  }
}

// A VF has carrier only while its PF is up (on mlx5 with link state auto, and on every NIC without
// that attribute).
void noteDownPfs(const AttachInput& input, AttachDecision& decision) {
  std::set<PciAddress> noted;
  for (const auto& lease : decision.leases) {
    const PhysicalFunction* pf = findPf(input.inventory, lease);
    const bool down = pf != nullptr && !pf->netdev().empty() && !pf->uplink().up;
    if (down && noted.insert(lease.pf).second) {
      decision.plan.notes.push_back(
          "PF " + toString(pf->address) + " (" + printable(pf->netdev()) +
          ") is down: the guest gets no carrier; set `up: true` for it in host.yaml and run "
          "`vfpass host apply`");
    }
  }
}

}  // namespace

AttachDecision planAttach(const AttachInput& given) {
  const auto renamed = withRenames(given);
  const auto adopting = withAdoptions(renamed ? *renamed : given);
  const AttachInput& input = adopting ? *adopting : renamed ? *renamed : given;
  // The leases that the mapping requires, and everything that prevents them.
  AttachDecision decision;
  decision.plan = {PlanKind::attach, input.domain, input.domainName, {}, {}};
  if (!input.inventory.iommuPresent &&
      !(input.mapping.vfs.empty() && input.mapping.functions.empty())) {
    decision.objections.push_back(objectToMissingIommu(input.topology.processors));
  }
  checkMigrationHost(input, decision.objections);
  Places places(input);
  decision.leases = decideLeases(input, places, decision.objections);
  chooseVectors(input, decision.leases, decision.plan.notes, decision.objections);
  const auto functions = decideFunctions(input, decision.leases, places, decision.objections);
  decision.leases.insert(decision.leases.end(), functions.begin(), functions.end());
  mirrorPlaces(input, decision);
  assignSettings(input, decision);
  // How they differ from the present ones, and whether that is possible now.
  const LeaseChanges changes = compareLeases(input, decision.leases);
  checkRunning(input, changes, devicesOf(decision.leases), decision.objections);
  checkCreations(input, changes, decision.objections);
  checkRenames(input, decision.objections);
  const auto confidential = judgeConfidentialGuest(input);
  if (confidential) {
    objectToStart(*confidential, decision.objections);
  }
  if (!decision.objections.empty()) {
    return decision;
  }
  // What the administrator should know of the result.
  noteDownPfs(input, decision);
  for (auto& note : switchdevNotes(input, decision.leases)) {
    decision.plan.notes.push_back(std::move(note));
  }
  if (std::string partition = partitionNote(input); !partition.empty()) {
    decision.plan.notes.push_back(std::move(partition));
  }
  if (!input.backendNote.empty()) {
    decision.plan.notes.push_back(input.backendNote);
  }
  if (confidential) {
    std::ranges::move(describe(*confidential), std::back_inserter(decision.plan.notes));
  }
  // Leases are recorded before anything changes; the guest gets devices that are ready.
  auto& steps = decision.plan.steps;
  addRecords(input, changes, steps);
  addCreations(input, changes, steps);
  addConfigurations(input, changes, steps);
  addBindings(input, changes, steps);
  addXml(input, decision.leases, changes, steps);
  addPlugging(input, decision.leases, changes, steps);
  if (!changes.dropped.empty()) {
    // After the XML, so that the domain cannot start with a device that is being removed.
    std::vector<Lease> leases = input.leases;
    leases.insert(leases.end(), decision.leases.begin(), decision.leases.end());
    const Restoration restore = planRestore(changes.dropped, leases, input.inventory,
                                            {input.domains, input.pools, input.unknown});
    steps.insert(steps.end(), restore.steps.begin(), restore.steps.end());
    decision.plan.notes.insert(decision.plan.notes.end(), restore.notes.begin(),
                               restore.notes.end());
  }
  return decision;
}

AttachDecision decideAttach(const AttachInput& input) {
  AttachDecision decision = planAttach(input);
  append(objectToActiveClaims(decision.plan, input.inventory, input.domains), decision.objections);
  throwObjections("cannot attach to domain " + printable(input.domainName), decision.objections);
  return decision;
}

}  // namespace vfpass::plan
