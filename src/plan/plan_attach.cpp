#include "vfpass/plan/plan_attach.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "check_running.hpp"
#include "decide_function.hpp"
#include "decide_lease.hpp"
#include "form.hpp"
#include "function_steps.hpp"
#include "mirror_places.hpp"
#include "plan_settings.hpp"
#include "recreate_vfs.hpp"
#include "restore_settings.hpp"
#include "switchdev.hpp"
#include "vf_demand.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/active_claims.hpp"
#include "vfpass/plan/disruption.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

const VirtualFunction* findVf(const Inventory& inventory, const Lease& lease) {
  const PhysicalFunction* pf = isVf(lease) ? findPf(inventory, lease.pf) : nullptr;
  return pf != nullptr && vfOf(lease).index < pf->vfs.size() ? &pf->vfs[vfOf(lease).index]
                                                             : nullptr;
}

// Changes to the domain's leases.
struct Changes {
  std::vector<Lease> put;      ///< new, with changed terms, or about to run
  std::vector<Lease> plugged;  ///< of these, the ones to plug into the running domain
  std::vector<Lease> dropped;  ///< no longer in the mapping, or moved to another VF
  std::vector<Lease> drifted;  ///< of the running guest, with settings that others changed
  bool terms = false;          ///< more than the state of a lease changes
};

bool isKept(const Lease& lease, const std::vector<Lease>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&](const Lease& each) {
    return each.entry == lease.entry && isVf(each) == isVf(lease) && sameDevice(each, lease);
  });
}

// Between two runs a VF holds neutral values, so that only a running guest's settings can drift.
// Values that the driver does not report are not compared.
bool hasDrifted(const AttachInput& input, const Lease& lease) {
  const VirtualFunction* vf = findVf(input.inventory, lease);
  if (!input.scope.live || !input.plugged.contains(lease.entry) || vf == nullptr) {
    return false;
  }
  const auto differing = differingAttributes(settingsToApply(lease), vf->settings);
  return std::any_of(differing.begin(), differing.end(), [&](Attribute attribute) {
    return only(vf->settings, {attribute}) != VfSettings{};
  });
}

Changes compare(const AttachInput& input, std::vector<Lease>& wanted) {
  Changes changes;
  for (auto& lease : wanted) {
    const Lease* earlier = earlierLease(input, lease.entry);
    const bool same = earlier != nullptr && sameTerms(*earlier, lease);
    const bool plugs = input.scope.live && !input.plugged.contains(lease.entry);
    if (same) {
      lease = *earlier;
    }
    if (plugs) {
      lease.state = LeaseState::running;
      lease.bootId = input.bootId;
      changes.plugged.push_back(lease);
    }
    if (!same || plugs) {
      changes.put.push_back(lease);
    } else if (hasDrifted(input, lease)) {
      changes.drifted.push_back(lease);
    }
    changes.terms = changes.terms || !same;
  }
  for (const auto& lease : input.leases) {
    if (lease.domain == input.domain && !isKept(lease, wanted)) {
      changes.dropped.push_back(lease);
    }
  }
  changes.terms = changes.terms || !changes.dropped.empty();
  return changes;
}

void addRecords(const AttachInput& input, const Changes& changes, std::vector<Step>& steps) {
  for (const auto& lease : changes.put) {
    const Lease* earlier = earlierLease(input, lease.entry);
    Action undo = DropLease{lease.domain, lease.entry, lease.generation, lease.pf};
    if (earlier != nullptr) {
      undo = RecordLease{*earlier};
    }
    steps.push_back({RecordLease{lease}, {undo}, "no other domain may use it"});
  }
}

// Numbers of VFs to create, by PF.
std::map<PciAddress, unsigned> creationsFor(const AttachInput& input, const Changes& changes) {
  std::map<PciAddress, unsigned> counts;
  for (const auto& lease : changes.put) {
    const PhysicalFunction* pf = findPf(input.inventory, lease.pf);
    if (isVf(lease) && pf != nullptr && pf->vfs.empty()) {
      counts[lease.pf] = vfCountFor(input, *pf);
    }
  }
  return counts;
}

void checkCreations(const AttachInput& input, const Changes& changes,
                    std::vector<Objection>& objections) {
  for (const auto& [pf, count] : creationsFor(input, changes)) {
    if (auto objection = objectToCreation(*findPf(input.inventory, pf), input.mapping.allow)) {
      objections.push_back(std::move(*objection));
    }
  }
}

void addCreations(const AttachInput& input, const Changes& changes, std::vector<Step>& steps) {
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

void addConfigurations(const AttachInput& input, const Changes& changes, std::vector<Step>& steps) {
  std::map<PciAddress, std::pair<ConfigureVfs, ConfigureVfs>> byPf;
  std::vector<Step> afterwards;
  std::vector<Lease> configured = changes.put;
  configured.insert(configured.end(), changes.drifted.begin(), changes.drifted.end());
  std::erase_if(configured, [](const Lease& lease) { return !isVf(lease); });
  for (const auto& lease : configured) {
    auto& [configure, undo] = byPf[lease.pf];
    const VirtualFunction* vf = findVf(input.inventory, lease);
    const VfSettings seen = vf == nullptr ? VfSettings{} : vf->settings;
    configure.pf = undo.pf = lease.pf;
    if (vf != nullptr) {
      const Reprobe reprobe = reprobeAround(lease, *vf, vfOf(lease).settings);
      steps.insert(steps.end(), reprobe.before.begin(), reprobe.before.end());
      afterwards.insert(afterwards.end(), reprobe.after.begin(), reprobe.after.end());
    }
    const Lease* earlier = earlierLease(input, lease.entry);
    const bool continues = earlier != nullptr && isVf(*earlier) && sameDevice(*earlier, lease);
    const bool plugged = input.scope.live && input.plugged.contains(lease.entry);
    const Lease kept = continues ? withoutEarlierSettings(*earlier, lease) : lease;
    const Lease target = plugged ? kept : withoutLeftOvers(kept, seen);
    if (const VfSettings wanted = settingsToApply(target);
        !differingAttributes(wanted, seen).empty()) {
      configure.vfs.push_back({vfOf(lease).index, wanted, vfOf(lease).required});
      undo.vfs.push_back({vfOf(lease).index, settingsToUndo(target, seen), {}});
    }
  }
  for (auto& [pf, actions] : byPf) {
    const PhysicalFunction* found = findPf(input.inventory, pf);
    if (found != nullptr && found->vfs.empty()) {
      const PfPolicy* policy = policyOf(*found, input.policy);
      actions.first.otherwise =
          newVfSettings(*found, policy != nullptr && policy->probeVfs, configured);
    }
    if (!actions.first.vfs.empty()) {
      steps.push_back({actions.first, {actions.second}, "the mapping sets these values"});
    }
  }
  steps.insert(steps.end(), afterwards.begin(), afterwards.end());
}

void addBindings(const AttachInput& input, const Changes& changes, std::vector<Step>& steps) {
  for (const auto& lease : changes.put) {
    if (!isVf(lease)) {
      bindFunction(lease, input.inventory, steps);
      continue;
    }
    const VirtualFunction* vf = findVf(input.inventory, lease);
    if (lease.managed || (vf != nullptr && vf->driver == "vfio-pci")) {
      continue;
    }
    // A VF that this plan creates must be unbound from vfio-pci before it can be removed.
    const std::vector<Action> undo =
        vf == nullptr ? std::vector<Action>{BindDriver{lease.vf, "", ""}} : undoBinding(lease, *vf);
    const bool disrupts = vf != nullptr && !vf->driver.empty();
    steps.push_back({BindDriver{lease.vf, "vfio-pci", "vfio-pci"}, undo,
                     disrupts ? "it is bound to " + vf->driver : "no driver is bound to it",
                     disrupts});
  }
}

std::vector<Lease> persistentOnes(const std::vector<Lease>& leases, const Uuid& domain) {
  std::vector<Lease> persistent;
  std::copy_if(leases.begin(), leases.end(), std::back_inserter(persistent),
               [&](const Lease& lease) { return lease.domain == domain && lease.persistent; });
  return persistent;
}

void addXml(const AttachInput& input, const std::vector<Lease>& wanted, const Changes& changes,
            std::vector<Step>& steps) {
  if (input.scope.config && (changes.terms || !input.xmlCurrent)) {
    steps.push_back({EditDomain{input.domain, persistentOnes(wanted, input.domain)},
                     {EditDomain{input.domain, persistentOnes(input.leases, input.domain)}},
                     "the guest gets the devices at its next start"});
  }
}

// The metadata come before the devices, so that a domain that stops in between is still released.
void addPlugging(const AttachInput& input, const std::vector<Lease>& wanted, const Changes& changes,
                 std::vector<Step>& steps) {
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

}  // namespace

namespace {

// A VF has carrier only while its PF is up (on mlx5 with link state auto, and on every NIC without
// that attribute).
void noteDownPfs(const AttachInput& input, AttachDecision& decision) {
  std::set<PciAddress> noted;
  for (const auto& lease : decision.leases) {
    const PhysicalFunction* pf = findPf(input.inventory, lease.pf);
    const bool down = pf != nullptr && !pf->netdev.empty() && !pf->netdevUp;
    if (isVf(lease) && down && noted.insert(lease.pf).second) {
      decision.plan.notes.push_back(
          "PF " + toString(pf->address) + " (" + printable(pf->netdev) +
          ") is down: the guest gets no carrier; set `up: true` for it in host.yaml and run "
          "`vfpass host apply`");
    }
  }
}

}  // namespace

std::vector<std::string> unreadOriginals(const AttachInput& input,
                                         const std::vector<Lease>& leases) {
  std::vector<std::string> notes;
  for (const auto& lease : leases) {
    const PhysicalFunction* pf = findPf(input.inventory, lease.pf);
    if (!isVf(lease) || pf == nullptr || vfOf(lease).index >= pf->vfs.size() ||
        lease.original.settings != VfSettings{}) {
      continue;
    }
    const VirtualFunction& vf = pf->vfs[vfOf(lease).index];
    const std::string subject =
        lease.entry + ": VF " + std::to_string(vf.index) + " of PF " + toString(lease.pf);
    if (isLeftover(vf, lease)) {
      notes.push_back(subject +
                      " still has what an earlier attach had set, whose record was lost with the "
                      "state database; detach will set neutral values and bind it to " +
                      printable(lease.original.driver));
    } else if (!lease.original.created && !pf->reportsNoVfs && !vf.settingsReadable) {
      notes.push_back(subject +
                      ": its attributes cannot be read; detach will set neutral values instead "
                      "of restoring them");
    }
  }
  return notes;
}

AttachDecision planAttach(const AttachInput& input) {
  AttachDecision decision;
  decision.plan = {PlanKind::attach, input.domain, input.domainName, {}, {}};
  Places places(input);
  decision.leases = decideLeases(input, places, decision.objections);
  const auto functions = decideFunctions(input, places, decision.objections);
  decision.leases.insert(decision.leases.end(), functions.begin(), functions.end());
  mirrorPlaces(input, decision);
  settleSettings(input, decision);
  const Changes changes = compare(input, decision.leases);
  checkRunning(input, {changes.put, changes.plugged, changes.dropped}, decision.objections);
  checkCreations(input, changes, decision.objections);
  if (!decision.objections.empty()) {
    return decision;
  }
  noteDownPfs(input, decision);
  for (auto& note : switchdevNotes(input, decision.leases)) {
    decision.plan.notes.push_back(std::move(note));
  }
  auto& steps = decision.plan.steps;
  addRecords(input, changes, steps);
  addCreations(input, changes, steps);
  addConfigurations(input, changes, steps);
  addBindings(input, changes, steps);
  addXml(input, decision.leases, changes, steps);
  addPlugging(input, decision.leases, changes, steps);
  if (!changes.dropped.empty()) {
    // After the XML, so that the domain cannot start with a device that is being removed.
    const Restoration restore = planRestore(changes.dropped, input.leases, input.inventory);
    steps.insert(steps.end(), restore.steps.begin(), restore.steps.end());
    decision.plan.notes.insert(decision.plan.notes.end(), restore.notes.begin(),
                               restore.notes.end());
  }
  return decision;
}

AttachDecision decideAttach(const AttachInput& input) {
  AttachDecision decision = planAttach(input);
  for (auto& objection : objectToActiveClaims(decision.plan, input.inventory, input.domains)) {
    decision.objections.push_back(std::move(objection));
  }
  throwObjections("cannot attach to domain " + printable(input.domainName), decision.objections);
  return decision;
}

}  // namespace vfpass::plan
