#include "vfpass/plan/plan_hook.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "device_steps.hpp"
#include "plan_vf_creation.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/owner_objections.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::plan {
namespace {

// The database's leases for the entries in the metadata: only what attach decided is applied.
std::vector<Lease> ownLeases(const std::vector<Lease>& metadata, const std::vector<Lease>& known) {
  std::vector<Lease> own;
  for (const auto& lease : metadata) {
    own.push_back(*findLease(known, lease.domain, lease.entry));
  }
  return own;
}

bool createdBefore(const PhysicalFunction& pf, const std::vector<Lease>& known) {
  return std::ranges::any_of(
      known, [&](const Lease& lease) { return lease.pf == pf.address && lease.original.created; });
}

// The lease while the domain starts.
Lease startingLease(Lease lease, const std::string& domainName, const std::string& bootId) {
  lease.domainName = domainName;
  lease.state = LeaseState::starting;
  lease.bootId = bootId;
  return isVf(lease) ? askingAgain(lease) : lease;
}

void addRecord(const Lease& starting, const std::vector<Lease>& known, std::vector<Step>& steps) {
  Lease reserved = *findLease(known, starting.domain, starting.entry);
  reserved.state = LeaseState::reserved;
  reserved.activatedPartition = false;
  steps.push_back({RecordLease{starting}, {RecordLease{reserved}}, "the domain is starting"});
}

// Somebody may have changed the number of vectors, or created the VFs again, since the attach.
Reprobe reprobeForStart(const PhysicalFunction& pf, const Lease& lease) {
  const VfSettings settings = settingsToApply(lease);
  const unsigned index = vfOf(lease).index;
  return index < pf.vfs.size() ? reprobeAround(lease, pf.vfs[index],
                                               only(settings, changing(settings, Change::unbound)))
                               : Reprobe{};
}

// Those that the PF has, or that the start creates for all leases: the count cannot grow for the
// domains that start later.
unsigned vfCount(const PhysicalFunction& pf, const std::vector<Lease>& known) {
  auto count = static_cast<unsigned>(pf.vfs.size());
  for (const auto& lease : pf.vfs.empty() ? known : std::vector<Lease>{}) {
    if (isVfOf(lease, pf.address)) {
      count = std::max({count, vfOf(lease).count, vfOf(lease).index + 1});
    }
  }
  return count;
}

void addConfigure(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                  const std::vector<Lease>& known, std::vector<Step>& steps) {
  ConfigureVfs configure{pf.address, {}};
  ConfigureVfs undo{pf.address, {}};
  std::vector<Step> afterwards;
  if (pf.vfs.empty()) {
    configure.otherwise = newVfSettings(pf, false, leases);
  }
  for (const auto& each : leases) {
    const VfSettings seen =
        vfOf(each).index < pf.vfs.size() ? pf.vfs[vfOf(each).index].settings : VfSettings{};
    const Lease target = withoutLeftOvers(each, seen);
    const Reprobe reprobe = reprobeForStart(pf, target);
    steps.insert(steps.end(), reprobe.before.begin(), reprobe.before.end());
    afterwards.insert(afterwards.end(), reprobe.after.begin(), reprobe.after.end());
    addChange(target, seen, configure, undo);
  }
  addVectorsOfOthers(pf, vfCount(pf, known), known, leases.front().domain, configure, undo);
  if (!configure.vfs.empty()) {
    steps.push_back({configure, {undo}, "attach decided these values"});
  }
  steps.insert(steps.end(), afterwards.begin(), afterwards.end());
}

void prepareFunctions(const std::vector<Lease>& leases, const std::vector<Lease>& known,
                      const std::set<PciAddress>& companions, const Inventory& inventory,
                      const std::string& bootId, PrepareDecision& decision) {
  append(checkLeasedFunctions(inventory, leases, companions), decision.objections);
  for (const auto& lease : leases) {
    const Lease starting = startingLease(lease, decision.plan.domainName, bootId);
    addRecord(starting, known, decision.plan.steps);
    bindFunction(starting, inventory, decision.plan.steps);
    objectToModules(known, lease, decision.objections);
  }
  setPartition(leases, true, "the guest's GPUs need it for NVLink", decision.plan.steps);
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
    steps.push_back(
        {CreateVfs{pf.address, vfCount(pf, known), false, std::nullopt, lagDevicePf(pf)},
         {RemoveVfs{pf.address, pf.probesVfs}},
         "the PF has no VFs: they do not survive a reboot",
         !disruptionsOf(pf).empty()});
  }
  addConfigure(pf, leases, known, steps);
  for (const auto& lease : leases) {
    const unsigned index = vfOf(lease).index;
    const std::string reason = "`managed: no` requires " + vfioDriverOf(lease);
    if (index >= pf.vfs.size()) {
      bindVf(lease, nullptr, reason, true, steps);
      continue;
    }
    const VirtualFunction between = reprobeForStart(pf, lease).between(pf.vfs[index]);
    bindVf(lease, &between, reason, true, steps);
  }
}

class Objections {
 public:
  explicit Objections(const std::string& domainName)
      : remedy_("run `vfpass attach " + printable(shellQuoted(domainName)) + "`") {}

  void add(const std::string& message) { objections_.push_back({message, remedy_}); }
  std::vector<Objection> take() { return std::move(objections_); }

 private:
  std::string remedy_;
  std::vector<Objection> objections_;
};

void compare(const Lease& metadata, const Lease& own, Objections& objections) {
  if (metadata.generation < own.generation) {
    objections.add("the XML has an older version of " + metadata.entry +
                   " than the last attach (generation " + std::to_string(metadata.generation) +
                   " instead of " + std::to_string(own.generation) + ")");
    return;
  }
  const auto terms = differingTerms(metadata, own);
  if (!terms.empty()) {
    objections.add("the XML's vfpass metadata for " + metadata.entry +
                   " differs from the attached lease: " + join(terms, ", "));
  }
}

// Collects the names of the terms in which two leases differ.
class TermComparison {
 public:
  TermComparison(Lease left, Lease right) : left_(std::move(left)), right_(std::move(right)) {}

  void of(const std::string& name, const auto& term) {
    if (term(left_) != term(right_)) {
      names_.push_back(name);
    }
  }

  // The same for a term that only a VF has. Leases of different kinds differ in their kind.
  void ofVf(const std::string& name, const auto& term) {
    if (isVf(left_) && isVf(right_)) {
      of(name, [&term](const Lease& lease) { return term(vfOf(lease)); });
    }
  }

  [[nodiscard]] std::vector<std::string> names() const {
    return names_.empty() && left_ != right_ ? std::vector<std::string>{"other terms"}
                                             // a member that is missing here
                                             : names_;
  }

 private:
  Lease left_;
  Lease right_;
  std::vector<std::string> names_;
};

void compareDevices(TermComparison& comparison) {
  comparison.of("kind", [](const Lease& lease) { return kindOf(lease); });
  comparison.of("device", [](const Lease& lease) { return std::tuple(lease.pf, lease.device); });
  comparison.ofVf("index", [](const LeasedVf& vf) { return vf.index; });
  comparison.of("card",
                [](const Lease& lease) { return std::tuple(lease.pfPath, lease.pfSerial); });
  comparison.of("VFIO driver", vfioDriverOf);
  comparison.of("NVLink module", nvlinkModuleOf);
  for (const Attribute attribute : allAttributes) {
    comparison.ofVf(std::string(toString(attribute)),
                    [attribute](const LeasedVf& vf) { return only(vf.settings, {attribute}); });
  }
  comparison.ofVf("link layer", [](const LeasedVf& vf) { return vf.infiniband; });
  comparison.ofVf("vf-count", [](const LeasedVf& vf) { return vf.count; });
  comparison.ofVf("required", [](const LeasedVf& vf) { return vf.required; });
  comparison.ofVf("form", [](const LeasedVf& vf) { return vf.interfaceForm; });
  comparison.ofVf("teaming", [](const LeasedVf& vf) { return vf.teamingWith; });
}

void compareOrigins(TermComparison& comparison) {
  comparison.of("original driver", [](const Lease& lease) {
    return std::tuple(lease.original.driver, lease.original.driverOverride,
                      lease.original.migratable);
  });
  comparison.of("original settings", [](const Lease& lease) { return lease.original.settings; });
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
  // The leases by PF, because a PF's VFs are created and configured together.
  std::map<PciAddress, std::vector<Lease>> byPf;
  std::vector<Lease> functions;
  const auto own = ownLeases(metadata, known);
  const auto companions = devicesOf(own);
  append(checkQuarantine(own, inventory.quarantined), decision.objections);
  for (const auto& lease : own) {
    // The database prevents two leases of one VF, but treats a whole PF and one of its VFs as two
    // devices.
    objectToLeases(known, lease, "run `vfpass attach` for this VM to choose another device",
                   decision.objections);
    auto& kind = !isVf(lease) ? functions : byPf[lease.pf];
    kind.push_back(lease);
  }
  // The VFs of each PF: first whether they can be used, then the steps.
  for (auto& [address, leases] : byPf) {
    const PhysicalFunction* pf = findPf(inventory, address);
    if (pf == nullptr) {
      decision.objections.push_back({"PF " + toString(address) + " does not exist or has no driver",
                                     "see `vfpass pf list`", ExitCode::failed});
      continue;
    }
    if (const auto fault = faultOfPort(*pf)) {
      decision.objections.push_back(
          {"PF " + toString(address) + " " + fault->what, fault->remedy, ExitCode::failed});
    }
    append(pf->vfs.empty() ? checkCreation(*pf, leases)
                           : checkLeasedVfs(*pf, leases, inventory.holders, companions),
           decision.objections);
    const bool ours = pf->vfs.empty() || createdBefore(*pf, known);
    std::ranges::transform(leases, leases.begin(), [&](const Lease& lease) {
      Lease starting = startingLease(lease, domainName, bootId);
      // After a reboot vfpass creates the VFs, no matter who created them before.
      starting.original.created = starting.original.created || ours;
      return starting;
    });
    preparePf(*pf, leases, known, decision.plan.steps);
  }
  prepareFunctions(functions, known, companions, inventory, bootId, decision);
  if (!decision.objections.empty()) {
    decision.plan.steps.clear();
  }
  return decision;
}

Plan planRelease(const Uuid& domain, const std::string& domainName, const std::vector<Lease>& known,
                 const Inventory& inventory, const std::string& bootId) {
  std::vector<Lease> used;
  std::ranges::copy_if(known, std::back_inserter(used), [&](const Lease& lease) {
    return lease.domain == domain && lease.state != LeaseState::reserved;
  });
  return {PlanKind::release,
          domain,
          domainName,
          stepsBetweenRuns(used, inventory, bootId, "the domain has stopped"),
          {}};
}

std::vector<std::string> differingTerms(const Lease& one, const Lease& other) {
  TermComparison comparison(termsOf(one), termsOf(other));
  compareDevices(comparison);
  compareOrigins(comparison);
  comparison.of("allow", [](const Lease& lease) { return lease.allow; });
  comparison.of("managed", [](const Lease& lease) { return lease.managed; });
  comparison.of("persistent", [](const Lease& lease) { return lease.persistent; });
  comparison.of("guest address", [](const Lease& lease) { return lease.guest; });
  comparison.of("domain settings", [](const Lease& lease) { return lease.edits; });
  comparison.of("generation", [](const Lease& lease) { return lease.generation; });
  return comparison.names();
}

std::vector<Objection> checkMetadata(const Uuid& domain, const std::string& domainName,
                                     const std::vector<Lease>& metadata,
                                     const std::vector<Lease>& known) {
  Objections objections(domainName);
  for (const auto& lease : metadata) {
    if (lease.domain != domain) {
      return {{"its vfpass metadata belongs to another domain (" + toString(lease.domain) +
                   "): the XML was copied",
               "run `vfpass attach` for this domain with a mapping of its own"}};
    }
    if (const Lease* own = findLease(known, domain, lease.entry)) {
      compare(lease, *own, objections);
    } else {
      objections.add("the state database has no lease " + lease.entry + " for this domain");
    }
  }
  for (const auto& own : known) {
    if (own.domain == domain && own.persistent &&
        findLease(metadata, domain, own.entry) == nullptr) {
      objections.add("the XML's vfpass metadata has no entry " + own.entry +
                     ", but it is attached to this domain");
    }
  }
  return objections.take();
}

}  // namespace vfpass::plan
