#include "device_steps.hpp"

#include <map>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

VfSettings neutralFor(const VfSettings& touched, bool infiniband) {
  return only(neutralSettings(infiniband), differingAttributes(touched, {}));
}

// libvirt sets MAC and VLAN of an <interface> when the domain starts and restores them when it
// stops.
VfSettings withoutLibvirtSettings(const Lease& lease, VfSettings settings) {
  if (isInterface(lease)) {
    settings.mac.reset();
    settings.vlan.reset();
  }
  return settings;
}

}  // namespace

VfSettings settingsToApply(const Lease& lease) {
  return withoutLibvirtSettings(lease, acceptedSettings(lease));
}

// Never the address: every lease states one, unless somebody else sets it.
Lease withoutLeftOvers(Lease lease, const VfSettings& seen) {
  LeasedVf& vf = vfOf(lease);
  const VfSettings neutral = without(neutralFor(seen, vf.infiniband),
                                     {Attribute::mac, Attribute::nodeGuid, Attribute::portGuid});
  vf.settings = firstOf(vf.settings, without(withoutLibvirtSettings(lease, neutral), vf.refused));
  return lease;
}

Lease askingAgain(Lease lease) {
  for (const Attribute attribute : differingAttributes(vfOf(lease).settings, {})) {
    vfOf(lease).refused.erase(attribute);
  }
  return lease;
}

Lease withoutEarlierSettings(const Lease& earlier, Lease lease) {
  if (isVf(lease) && isForSameDevice(earlier, lease)) {
    LeasedVf& vf = vfOf(lease);
    const VfSettings set = acceptedSettings(earlier);
    const VfSettings found =
        only(earlier.original.settings, differingAttributes(keptSettings(set), {}));
    vf.settings = firstOf(vf.settings, firstOf(neutralFor(set, vf.infiniband), found));
  }
  return lease;
}

VfSettings settingsToRestore(const Lease& lease) {
  const LeasedVf& vf = vfOf(lease);
  const VfSettings found = firstOf(lease.original.settings, neutralFor(vf.settings, vf.infiniband));
  return withoutLibvirtSettings(lease, without(found, vf.refused));
}

VfSettings settingsToUndo(const Lease& lease, const VfSettings& seen) {
  const VfSettings wanted = settingsToApply(lease);
  return firstOf(only(seen, differingAttributes(wanted, {})),
                 neutralFor(wanted, vfOf(lease).infiniband));
}

VfSettings neutralValues(const Lease& lease, const VfSettings& seen) {
  const LeasedVf& vf = vfOf(lease);
  VfSettings touched = without(firstOf(vf.settings, seen), vf.refused);
  if (keepsMac(lease)) {
    touched.mac.reset();
  }
  return withoutLibvirtSettings(lease, neutralFor(touched, vf.infiniband));
}

void addChange(const Lease& lease, const VfSettings& seen, ConfigureVfs& configure,
               ConfigureVfs& undo) {
  const VfSettings wanted = settingsToApply(lease);
  if (!differingAttributes(wanted, seen).empty()) {
    configure.vfs.push_back({vfOf(lease).index, wanted, vfOf(lease).required});
    undo.vfs.push_back({vfOf(lease).index, settingsToUndo(lease, seen), {}});
  }
}

namespace {

// First the values, because the host's driver reads them when it probes.
std::vector<Action> undoBinding(const Lease& lease, const VirtualFunction& vf) {
  std::vector<Action> actions;
  if (!vf.driver.empty() && !differingAttributes(settingsToApply(lease), vf.settings).empty()) {
    const VfChange earlier{vfOf(lease).index, settingsToUndo(lease, vf.settings), {}};
    actions.emplace_back(ConfigureVfs{lease.pf, {earlier}});
  }
  actions.emplace_back(bindingOf(lease, vf));
  return actions;
}

// A VF that has the driver but is not migratable was bound by somebody else: it takes an unbound VF
// to change that.
bool isMissingMigration(const Lease& lease, const VirtualFunction& vf) {
  return migrates(lease) && vf.driver == vfioDriverOf(lease) && !vf.migratable.value_or(true);
}

}  // namespace

BindDriver bindingOf(const Lease& lease, const VirtualFunction& vf) {
  return {vf.address, vf.driver, vf.driverOverride, migrates(lease) ? vf.migratable : std::nullopt};
}

std::string reasonToBind(const std::string& driver) {
  return driver.empty() ? "no driver is bound to it" : "it is bound to " + driver;
}

void bindVf(const Lease& lease, const VirtualFunction* vf, const std::string& reason, bool disrupts,
            std::vector<Step>& steps) {
  const std::string driver = vfioDriverOf(lease);
  const bool incomplete = vf != nullptr && isMissingMigration(lease, *vf);
  if (lease.managed || (vf != nullptr && vf->driver == driver && !incomplete)) {
    return;
  }
  // A VF that this plan creates must be unbound from its driver before it can be removed.
  const auto undo = vf == nullptr ? std::vector<Action>{BindDriver{lease.device, "", ""}}
                                  : undoBinding(lease, *vf);
  steps.push_back({BindDriver{lease.device, driver, driver}, undo,
                   incomplete ? "it has this driver, but is not migratable" : reason, disrupts});
}

VirtualFunction Reprobe::between(VirtualFunction vf) const {
  vf.driver = before.empty() ? vf.driver : "";
  return vf;
}

namespace {

std::string unboundReason(Attribute attribute) {
  return "the kernel changes " + std::string(toString(attribute)) +
         " only while no driver is bound";
}

// Why the VF is unbound before a change to `wanted`; empty: it is not. A value that cannot be read
// is no reason: it may be the wanted one.
std::string reasonToUnbind(const Lease& lease, const VirtualFunction& vf,
                           const VfSettings& wanted) {
  const auto differing = [&](Change change) {
    return differingAttributes(only(wanted, changing(wanted, change)), vf.settings);
  };
  auto unbound = differing(Change::unbound);
  std::erase_if(
      unbound, [&](Attribute attribute) { return only(vf.settings, {attribute}) == VfSettings{}; });
  if (!vf.driver.empty() && !unbound.empty()) {
    return unboundReason(unbound.front());
  }
  const bool onHostDriver = !vf.driver.empty() && !isVfioDriver(vf.driver);
  return lease.managed && vfOf(lease).infiniband && onHostDriver &&
                 !differing(Change::probe).empty()
             ? vf.driver + " reads GUIDs when it probes"
             : "";
}

Reprobe unbindAround(const Lease& lease, const VirtualFunction& vf, const std::string& reason) {
  if (reason.empty()) {
    return {};
  }
  const BindDriver bound = bindingOf(lease, vf);
  const BindDriver unbound{vf.address, "", vf.driverOverride, bound.migratable};
  Reprobe reprobe{{{unbound, {bound}, reason, !isVfioDriver(vf.driver)}}, {}};
  if (lease.managed) {
    const bool guids = vfOf(lease).infiniband && !isVfioDriver(vf.driver);
    const char* const set = guids ? "the GUIDs are set" : "the values are set";
    reprobe.after.push_back({bound, {unbound}, set, false});
  }
  return reprobe;
}

}  // namespace

Reprobe reprobeAround(const Lease& lease, const VirtualFunction& vf, const VfSettings& wanted) {
  return unbindAround(lease, vf, reasonToUnbind(lease, vf, wanted));
}

Reprobe reprobeNew(const Lease& lease, const PhysicalFunction& pf) {
  VirtualFunction vf;
  vf.address = lease.device;
  vf.driver = pf.driver;
  const auto unbound = changing(vfOf(lease).settings, Change::unbound);
  const bool unbinds = !vf.driver.empty() && !unbound.empty();
  Reprobe reprobe = unbindAround(lease, vf, unbinds ? unboundReason(unbound.front()) : "");
  for (Step& step : reprobe.before) {
    step.undo = {};  // the VF is removed
    step.disrupts = false;
  }
  return reprobe;
}

namespace {

void reset(const Device& function, const std::string& reason, std::vector<Step>& steps) {
  if (isVfioDriver(function.driver)) {
    steps.push_back({ResetFunction{function.address}, {}, reason});
  }
}

}  // namespace

void bindFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps) {
  const Device* function = findFunction(inventory, lease.device);
  const std::string driver = vfioDriverOf(lease);
  if (function == nullptr || function->driver == driver || lease.managed) {
    return;
  }
  steps.push_back({BindDriver{lease.device, driver, driver},
                   {BindDriver{lease.device, function->driver, function->driverOverride}},
                   reasonToBind(function->driver),
                   !function->driver.empty()});
}

void restoreFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps) {
  const Device* function = findFunction(inventory, lease.device);
  if (function == nullptr) {
    return;
  }
  if (lease.managed) {
    return;  // libvirt has rebound the device itself
  }
  if (lease.state != LeaseState::reserved) {
    reset(*function, "it was not reset after its last use", steps);
  }
  const BindDriver bind{lease.device, lease.original.driver, lease.original.driverOverride};
  if (bind.driver != function->driver || bind.driverOverride != function->driverOverride) {
    steps.push_back({bind, {}, "this was its driver before " + lease.entry + " was attached"});
  }
}

void setPartition(const std::vector<Lease>& leases, bool active, const std::string& reason,
                  std::vector<Step>& steps) {
  SetPartition set{{}, {}, active};
  for (const auto& lease : leases) {
    if (const auto module = nvlinkModuleOf(lease)) {
      set.gpus.push_back(lease.device);
      set.modules.push_back(*module);
    }
  }
  if (set.gpus.empty()) {
    return;
  }
  SetPartition undo = set;
  undo.active = false;
  steps.push_back({set, active ? std::vector<Action>{undo} : std::vector<Action>{}, reason});
}

namespace {

constexpr const char* dataReason = "its next owner must not find data left by this one";

void resetLeasedFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps) {
  const Device* function = findFunction(inventory, lease.device);
  if (function != nullptr && otherDevice(lease, *function).empty()) {
    reset(*function, dataReason, steps);
  }
}

}  // namespace

std::vector<Step> stepsBetweenRuns(const std::vector<Lease>& leases, const Inventory& inventory,
                                   const std::string& bootId, const std::string& reason) {
  std::vector<Step> steps;
  std::vector<Step> records;
  std::map<PciAddress, ConfigureVfs> byPf;
  // Before the resets, which the fabric manager would report as failed NVLinks.
  setPartition(leases, false, reason, steps);
  // Values of the VFs of one PF are set in one step.
  for (const auto& lease : leases) {
    Lease reserved = lease;
    reserved.state = LeaseState::reserved;
    reserved.bootId = bootId;
    reserved.activatedPartition = false;
    records.push_back({RecordLease{reserved}, {}, reason});
    if (!isVf(lease)) {
      resetLeasedFunction(lease, inventory, steps);
      continue;
    }
    const VirtualFunction* vf = findVf(inventory, lease);
    if (vf == nullptr || !otherDevice(lease, *findPf(inventory, lease.pf)).empty()) {
      continue;
    }
    // libvirt skips the reset of a device that is already bound to a VFIO driver.
    if (isVfioDriver(vf->driver)) {
      steps.push_back({ResetFunction{vf->address}, {}, dataReason});
    }
    if (const VfSettings neutral = neutralValues(lease, vf->settings); neutral != VfSettings{}) {
      byPf.try_emplace(lease.pf, ConfigureVfs{lease.pf, {}})
          .first->second.vfs.push_back({vfOf(lease).index, neutral, {}});
    }
  }
  for (const auto& [address, configure] : byPf) {
    steps.push_back({configure, {}, "a VF has neutral values between two owners"});
  }
  steps.insert(steps.end(), records.begin(), records.end());
  return steps;
}

}  // namespace vfpass::plan
