#include "vfpass/plan/plan_hook.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "function_steps.hpp"
#include "other_owners.hpp"
#include "recreate_vfs.hpp"
#include "restore_settings.hpp"
#include "scrub.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/plan/check_vf.hpp"
#include "vfpass/plan/disruption.hpp"
#include "vfpass/plan/metadata_check.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::plan {
namespace {

const Lease* findKnown(const std::vector<Lease>& known, const Lease& wanted) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const Lease& lease) {
    return lease.domain == wanted.domain && lease.entry == wanted.entry;
  });
  return found == known.end() ? nullptr : &*found;
}

// The database's leases for the entries in the metadata: only what attach decided is applied.
std::vector<Lease> ownLeases(const std::vector<Lease>& metadata, const std::vector<Lease>& known) {
  std::vector<Lease> own;
  for (const auto& lease : metadata) {
    own.push_back(*findKnown(known, lease));
  }
  return own;
}

bool createdBefore(const PhysicalFunction& pf, const std::vector<Lease>& known) {
  return std::any_of(known.begin(), known.end(), [&](const Lease& lease) {
    return lease.pf == pf.address && lease.original.created;
  });
}

// The lease while the domain starts.
Lease startingLease(Lease lease, const std::string& domainName, const std::string& bootId) {
  lease.domainName = domainName;
  lease.state = LeaseState::starting;
  lease.bootId = bootId;
  return isVf(lease) ? askingAgain(lease) : lease;
}

void addRecord(const Lease& starting, const std::vector<Lease>& known, std::vector<Step>& steps) {
  Lease reserved = *findKnown(known, starting);
  reserved.state = LeaseState::reserved;
  steps.push_back({RecordLease{starting}, {RecordLease{reserved}}, "the domain is starting"});
}

void addConfigure(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                  std::vector<Step>& steps) {
  ConfigureVfs configure{pf.address, {}};
  ConfigureVfs undo{pf.address, {}};
  if (pf.vfs.empty()) {
    configure.otherwise = newVfSettings(pf, false, leases);
  }
  for (const auto& each : leases) {
    const VfSettings seen =
        vfOf(each).index < pf.vfs.size() ? pf.vfs[vfOf(each).index].settings : VfSettings{};
    const Lease lease = withoutLeftOvers(each, seen);
    if (const VfSettings wanted = settingsToApply(lease);
        !differingAttributes(wanted, seen).empty()) {
      configure.vfs.push_back({vfOf(lease).index, wanted, vfOf(lease).required});
      undo.vfs.push_back({vfOf(lease).index, settingsToUndo(lease, seen), {}});
    }
  }
  if (!configure.vfs.empty()) {
    steps.push_back({configure, {undo}, "attach decided these values"});
  }
}

void addBind(const PhysicalFunction& pf, const Lease& lease, std::vector<Step>& steps) {
  const bool exists = vfOf(lease).index < pf.vfs.size();
  if (lease.managed || (exists && pf.vfs[vfOf(lease).index].driver == "vfio-pci")) {
    return;
  }
  // A VF that this plan creates must be unbound from vfio-pci before it can be removed.
  const std::vector<Action> undo = exists ? undoBinding(lease, pf.vfs[vfOf(lease).index])
                                          : std::vector<Action>{BindDriver{lease.vf, "", ""}};
  steps.push_back({BindDriver{lease.vf, "vfio-pci", "vfio-pci"}, undo,
                   "`managed: no` requires vfio-pci", true});
}

void prepareFunctions(const std::vector<Lease>& leases, const std::vector<Lease>& known,
                      const Inventory& inventory, const std::string& bootId,
                      PrepareDecision& decision) {
  const auto found = checkLeasedFunctions(inventory, leases);
  decision.objections.insert(decision.objections.end(), found.begin(), found.end());
  for (const auto& lease : leases) {
    const Lease starting = startingLease(lease, decision.plan.domainName, bootId);
    addRecord(starting, known, decision.plan.steps);
    bindFunction(starting, inventory, decision.plan.steps);
  }
}

// Nobody is asked at a start: the mapping has to accept a disruption beforehand.
std::vector<Objection> checkCreation(const PhysicalFunction& pf, const std::vector<Lease>& leases) {
  std::set<Allowance> allow;
  for (const auto& lease : leases) {
    allow.insert(lease.allow.begin(), lease.allow.end());
  }
  const auto objection = objectToCreation(pf, allow);
  return objection ? std::vector{*objection} : std::vector<Objection>{};
}

void preparePf(const PhysicalFunction& pf, const std::vector<Lease>& leases,
               const std::vector<Lease>& known, std::vector<Step>& steps) {
  for (const auto& lease : leases) {
    addRecord(lease, known, steps);
  }
  if (pf.vfs.empty()) {
    // Of all leases: the count cannot grow for the domains that start later.
    unsigned count = 0;
    for (const auto& lease : known) {
      if (isVf(lease) && lease.pf == pf.address) {
        count = std::max({count, vfOf(lease).count, vfOf(lease).index + 1});
      }
    }
    steps.push_back({CreateVfs{pf.address, count, false, std::nullopt, lagDevicePf(pf)},
                     {RemoveVfs{pf.address, pf.probesVfs}},
                     "the PF has no VFs: they do not survive a reboot",
                     !disruptionsOf(pf).empty()});
  }
  addConfigure(pf, leases, steps);
  for (const auto& lease : leases) {
    addBind(pf, lease, steps);
  }
}

}  // namespace

PrepareDecision planPrepare(const Uuid& domain, const std::string& domainName,
                            const std::vector<Lease>& metadata, const std::vector<Lease>& known,
                            const Inventory& inventory, const std::string& bootId) {
  PrepareDecision decision{{PlanKind::prepare, domain, domainName, {}, {}}, {}};
  decision.objections = checkMetadata(domain, domainName, metadata, known);
  if (!decision.objections.empty()) {
    return decision;
  }
  std::map<PciAddress, std::vector<Lease>> byPf;
  std::vector<Lease> functions;
  for (const auto& lease : ownLeases(metadata, known)) {
    // The database prevents two leases of one VF, but treats a whole PF and one of its VFs as two
    // devices.
    objectToLeases(known, lease, "run `vfpass attach` for this VM to choose another device",
                   decision.objections);
    auto& kind = !isVf(lease) ? functions : byPf[lease.pf];
    kind.push_back(lease);
  }
  for (auto& [address, leases] : byPf) {
    const PhysicalFunction* pf = findPf(inventory, address);
    if (pf == nullptr) {
      decision.objections.push_back({"PF " + toString(address) + " does not exist or has no driver",
                                     "see `vfpass pf list`", ExitCode::failed});
      continue;
    }
    if (const auto fault = faultOfPort(portFactsOf(*pf))) {
      decision.objections.push_back(
          {"PF " + toString(address) + " " + fault->what, fault->remedy, ExitCode::failed});
    }
    const auto found = pf->vfs.empty() ? checkCreation(*pf, leases)
                                       : checkLeasedVfs(*pf, leases, inventory.holders);
    decision.objections.insert(decision.objections.end(), found.begin(), found.end());
    const bool ours = pf->vfs.empty() || createdBefore(*pf, known);
    std::transform(leases.begin(), leases.end(), leases.begin(), [&](const Lease& lease) {
      Lease starting = startingLease(lease, domainName, bootId);
      // After a reboot vfpass creates the VFs, no matter who created them before.
      starting.original.created = starting.original.created || ours;
      return starting;
    });
    preparePf(*pf, leases, known, decision.plan.steps);
  }
  prepareFunctions(functions, known, inventory, bootId, decision);
  if (!decision.objections.empty()) {
    decision.plan.steps.clear();
  }
  return decision;
}

Plan planRelease(const Uuid& domain, const std::string& domainName, const std::vector<Lease>& known,
                 const Inventory& inventory, const std::string& bootId) {
  std::vector<Lease> used;
  std::copy_if(known.begin(), known.end(), std::back_inserter(used), [&](const Lease& lease) {
    return lease.domain == domain && lease.state != LeaseState::reserved;
  });
  return {PlanKind::release,
          domain,
          domainName,
          planScrub(used, inventory, bootId, "the domain has stopped"),
          {}};
}

}  // namespace vfpass::plan
