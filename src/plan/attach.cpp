#include "vfpass/plan/attach.hpp"

#include <algorithm>
#include <map>

#include "decide_lease.hpp"
#include "form.hpp"
#include "restore_settings.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/detach.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

const VirtualFunction* findVf(const Inventory& inventory, const Lease& lease) {
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  return pf != nullptr && lease.vfIndex < pf->vfs.size() ? &pf->vfs[lease.vfIndex] : nullptr;
}

// What has to happen to the domain's leases.
struct Changes {
  std::vector<Lease> put;      ///< new, or with other terms
  std::vector<Lease> dropped;  ///< no longer in the mapping, or moved to another VF
};

Changes compare(const AttachInput& input, std::vector<Lease>& wanted) {
  Changes changes;
  for (auto& lease : wanted) {
    const Lease* earlier = earlierLease(input, lease.vfName);
    if (earlier != nullptr && sameTerms(*earlier, lease)) {
      lease = *earlier;
      continue;
    }
    changes.put.push_back(lease);
  }
  for (const auto& lease : input.leases) {
    const bool kept = std::any_of(wanted.begin(), wanted.end(), [&](const Lease& each) {
      return each.vfName == lease.vfName && each.pf == lease.pf && each.vfIndex == lease.vfIndex;
    });
    if (lease.domain == input.domain && !kept) {
      changes.dropped.push_back(lease);
    }
  }
  return changes;
}

void checkNotRunning(const AttachInput& input, const Changes& changes,
                     std::vector<Objection>& objections) {
  std::vector<Lease> touched = changes.put;
  touched.insert(touched.end(), changes.dropped.begin(), changes.dropped.end());
  for (const auto& lease : touched) {
    const Lease* earlier = earlierLease(input, lease.vfName);
    if (input.active && earlier != nullptr && earlier->state != LeaseState::reserved) {
      objections.push_back({lease.vfName + " is in use by the running guest and cannot be changed",
                            "shut the domain down first"});
    }
  }
}

void addRecords(const AttachInput& input, const Changes& changes, std::vector<Step>& steps) {
  for (const auto& lease : changes.put) {
    const Lease* earlier = earlierLease(input, lease.vfName);
    Action undo = DropLease{lease.domain, lease.vfName, lease.generation};
    if (earlier != nullptr) {
      undo = RecordLease{*earlier};
    }
    steps.push_back({RecordLease{lease}, {undo}, "nobody else may take it"});
  }
}

void addCreations(const AttachInput& input, const Changes& changes, std::vector<Step>& steps) {
  std::map<PciAddress, unsigned> counts;
  for (const auto& lease : changes.put) {
    const PhysicalFunction* pf = findPf(input.inventory, lease.pf);
    if (pf != nullptr && pf->vfs.empty()) {
      counts[lease.pf] = wantedVfCount(*pf, input.policy);
    }
  }
  for (const auto& [pf, count] : counts) {
    const PfPolicy* policy = policyOf(*findPf(input.inventory, pf), input.policy);
    steps.push_back({CreateVfs{pf, count, policy != nullptr && policy->probeVfs},
                     {RemoveVfs{pf, findPf(input.inventory, pf)->probesVfs}},
                     policy != nullptr && policy->vfCount
                         ? "the PF has none, host.yaml asks for " + std::to_string(count)
                         : "the PF has none; a count cannot grow later while VFs are in use"});
  }
}

void addConfigurations(const AttachInput& input, const Changes& changes, std::vector<Step>& steps) {
  std::map<PciAddress, std::pair<ConfigureVfs, ConfigureVfs>> byPf;
  std::vector<Step> afterwards;
  for (const auto& lease : changes.put) {
    auto& [configure, undo] = byPf[lease.pf];
    const VirtualFunction* vf = findVf(input.inventory, lease);
    const VfSettings seen = vf == nullptr ? VfSettings{} : vf->settings;
    configure.pf = undo.pf = lease.pf;
    if (vf != nullptr) {
      const Reprobe reprobe = reprobeAround(lease, *vf, lease.settings);
      steps.insert(steps.end(), reprobe.before.begin(), reprobe.before.end());
      afterwards.insert(afterwards.end(), reprobe.after.begin(), reprobe.after.end());
    }
    if (const VfSettings wanted = settingsToApply(lease);
        !differingAttributes(wanted, seen).empty()) {
      configure.vfs.push_back({lease.vfIndex, wanted, lease.required});
      undo.vfs.push_back({lease.vfIndex, settingsToUndo(lease, seen), {}});
    }
  }
  for (const auto& [pf, actions] : byPf) {
    if (!actions.first.vfs.empty()) {
      steps.push_back({actions.first, {actions.second}, "the mapping's values"});
    }
  }
  steps.insert(steps.end(), afterwards.begin(), afterwards.end());
}

void addBindings(const AttachInput& input, const Changes& changes, std::vector<Step>& steps) {
  for (const auto& lease : changes.put) {
    const VirtualFunction* vf = findVf(input.inventory, lease);
    if (lease.managed || (vf != nullptr && vf->driver == "vfio-pci")) {
      continue;
    }
    // A VF that this plan creates has to be off vfio-pci again before it can be removed.
    const std::vector<Action> undo =
        vf == nullptr ? std::vector<Action>{BindDriver{lease.vf, "", ""}} : undoBinding(lease, *vf);
    const bool disrupts = vf != nullptr && !vf->driver.empty();
    steps.push_back({BindDriver{lease.vf, "vfio-pci", "vfio-pci"}, undo,
                     disrupts ? vf->driver + " holds it" : "no driver holds it", disrupts});
  }
}

void addXml(const AttachInput& input, const std::vector<Lease>& wanted, const Changes& changes,
            std::vector<Step>& steps) {
  if (changes.put.empty() && changes.dropped.empty() && input.xmlCurrent) {
    return;
  }
  std::vector<Lease> earlier;
  std::copy_if(input.leases.begin(), input.leases.end(), std::back_inserter(earlier),
               [&](const Lease& lease) { return lease.domain == input.domain; });
  steps.push_back({EditDomain{input.domain, wanted},
                   {EditDomain{input.domain, earlier}},
                   "the guest sees the devices from its next start on"});
}

}  // namespace

AttachDecision planAttach(const AttachInput& input) {
  AttachDecision decision;
  decision.plan = {PlanKind::attach, input.domain, input.domainName, {}, {}};
  decision.leases = decideLeases(input, decision.objections);
  for (const auto& gpu : input.mapping.gpus) {
    decision.objections.push_back(
        {toString(gpu.place) + ": this version does not pass GPUs through (" + gpu.name + ")",
         "remove `gpus:` and give the GPU its own <hostdev>", ExitCode::badInput});
  }
  const Changes changes = compare(input, decision.leases);
  checkNotRunning(input, changes, decision.objections);
  if (!decision.objections.empty()) {
    return decision;
  }
  auto& steps = decision.plan.steps;
  addRecords(input, changes, steps);
  addCreations(input, changes, steps);
  addConfigurations(input, changes, steps);
  addBindings(input, changes, steps);
  addXml(input, decision.leases, changes, steps);
  if (!changes.dropped.empty()) {
    // After the XML, so that no start can find a device that is being taken away.
    const auto restore = planRestore(changes.dropped, input.leases, input.inventory);
    steps.insert(steps.end(), restore.begin(), restore.end());
  }
  return decision;
}

}  // namespace vfpass::plan
