#include "plan_vf_creation.hpp"

#include <algorithm>

#include "device_steps.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/lease_device.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

bool isSwitchdev(const PhysicalFunction& pf) {
  return pf.eswitchMode == EswitchMode::switchdev && pf.driver == "mlx5_core";
}

bool endsLag(const PhysicalFunction& pf) {
  return pf.lag && pf.eswitchMode != EswitchMode::switchdev;
}

std::string endOfLag(const RoceLag& lag) {
  return "the RoCE LAG of " + printable(lag.bond) + " is disabled" +
         (lag.rdmaDevice.empty()
              ? ""
              : " and its RDMA device " + printable(lag.rdmaDevice) + " removed");
}

}  // namespace

std::vector<std::string> disruptionsOf(const PhysicalFunction& pf) {
  const std::string netdev = "netdev " + printable(pf.netdev());
  std::vector<std::string> found;
  for (const auto& upper : pf.uppers) {
    found.push_back(netdev + " is below " + printable(upper));
  }
  if (!pf.addresses.empty()) {
    found.push_back(netdev + (pf.addresses.size() == 1 ? " has address " : " has addresses ") +
                    join(pf.addresses, ", "));
  }
  if (endsLag(pf)) {
    found.push_back(endOfLag(*pf.lag));
  }
  return found;
}

std::optional<PciAddress> lagDevicePf(const PhysicalFunction& pf) {
  return endsLag(pf) ? pf.lag->rdmaPf : std::nullopt;
}

std::optional<Objection> objectToCreation(const PhysicalFunction& pf,
                                          const std::set<Allowance>& allow) {
  if (!endsLag(pf) || allow.contains(Allowance::disruption)) {
    return std::nullopt;
  }
  return Objection{"creating the VFs of PF " + toString(pf.address) +
                       " would disrupt the host: " + endOfLag(*pf.lag),
                   "create them beforehand, when nobody is disrupted, with "
                   "`virtual-function-count` in host.yaml and `vfpass host apply`, or accept it "
                   "with `allow: [disruption]` in the mapping and run `vfpass attach`",
                   ExitCode::refused};
}

namespace {

// Settings that a new VF does not have by default. The spoof check is always among them, because
// its default depends on the driver (mlx5: off, igb: on).
VfSettings settingsToCarry(const PhysicalFunction& pf, const VirtualFunction& vf) {
  const bool infiniband = pf.linkLayer == LinkLayer::infiniband;
  VfSettings seen = vf.settings;
  if (!infiniband ||
      seen.nodeGuid == Guid{}) {  // Ethernet derives it from the MAC; 0 is not a GUID
    seen.nodeGuid.reset();
  }
  if (!infiniband || seen.portGuid == Guid{}) {
    seen.portGuid.reset();
  }
  const auto kept = differingAttributes(keptSettings(seen), {});
  seen = without(seen, {kept.begin(), kept.end()});  // other VFs may need what one has
  auto attributes = differingAttributes(seen, neutralSettings(infiniband));
  if (seen.spoofCheck && std::ranges::find(attributes, Attribute::spoofCheck) == attributes.end()) {
    attributes.push_back(Attribute::spoofCheck);
  }
  return without(only(seen, attributes), lackingAttributes(pf));
}

// No new VF is migratable, and in legacy mode none can be made so.
std::optional<bool> migratableToCarry(const PhysicalFunction& before, unsigned index) {
  const bool was = index < before.vfs.size() && before.vfs[index].migratable.value_or(false);
  return was && isSwitchdev(before) ? std::optional(true) : std::nullopt;
}

ConfigureVfs carriedSettings(const PhysicalFunction& before, unsigned count) {
  ConfigureVfs configure{before.address, {}};
  for (const auto& vf : before.vfs) {
    const VfSettings settings = settingsToCarry(before, vf);
    if (vf.index < count && settings != VfSettings{}) {
      configure.vfs.push_back({vf.index, settings, {}});
    }
  }
  return configure;
}

bool isReadByDriver(const VfSettings& settings) {
  return !changing(settings, Change::probe).empty();
}

}  // namespace

VfSettings newVfSettings(const PhysicalFunction& pf, bool driven,
                         const std::vector<Lease>& leases) {
  VfSettings neutral = neutralSettings(pf.linkLayer == LinkLayer::infiniband);
  if (pf.linkLayer == LinkLayer::infiniband) {
    neutral.linkState.reset();  // the driver sets its default when it creates a VF
  }
  if (driven) {
    neutral.spoofCheck.reset();
  }
  if (std::ranges::any_of(
          leases, [&](const Lease& lease) { return lease.pf == pf.address && keepsMac(lease); })) {
    neutral.mac.reset();
  }
  return without(neutral, lackingAttributes(pf));
}

bool probesNewVfs(const PhysicalFunction& pf, const HostPolicy& policy) {
  const PfPolicy* entry = policyOf(pf, policy);
  return pf.vfs.empty() && entry != nullptr && entry->probeVfs;
}

bool canTakeVectors(const Lease& lease, const PhysicalFunction& pf) {
  if (!isVfOf(lease, pf.address) || lease.state != LeaseState::reserved ||
      !settingsToApply(lease).msixVectors || !otherDevice(lease, pf).empty()) {
    return false;
  }
  const unsigned index = vfOf(lease).index;
  return pf.vfs.empty() || (index < pf.vfs.size() && pf.vfs[index].driver.empty());
}

void addVectorsOfOthers(const PhysicalFunction& pf, unsigned count, const std::vector<Lease>& known,
                        const Uuid& own, ConfigureVfs& configure, ConfigureVfs& undo) {
  for (Lease lease : known) {
    if (lease.domain == own || !canTakeVectors(lease, pf) || vfOf(lease).index >= count) {
      continue;
    }
    LeasedVf& vf = vfOf(lease);
    vf.settings = only(vf.settings, {Attribute::msixVectors});
    vf.required = {};  // only the start of its own domain requires them
    addChange(lease, vf.index < pf.vfs.size() ? pf.vfs[vf.index].settings : VfSettings{}, configure,
              undo);
  }
}

std::vector<Action> recreateVfs(const PhysicalFunction& before, unsigned count,
                                const std::function<VfBinding(unsigned)>& bindingOf,
                                std::optional<bool> autoprobe) {
  unsigned driven = 0;
  for (unsigned index = 0; index < count; ++index) {
    driven += bindingOf(index).driver.empty() ? 0 : 1;
  }
  ConfigureVfs configure = carriedSettings(before, count);
  configure.otherwise = newVfSettings(before, driven > 0, {});
  const bool late = std::ranges::any_of(configure.vfs, [&](const VfChange& change) {
    return isReadByDriver(change.settings) && !bindingOf(change.index).driver.empty();
  });
  const bool probe = count > 0 && driven == count && !late;
  std::vector<Action> actions{CreateVfs{before.address, count, probe, autoprobe}};
  actions.emplace_back(configure);
  for (unsigned index = 0; index < count; ++index) {
    const VfBinding binding = bindingOf(index);
    const auto address = vfAddress(before, index);
    const auto migratable = migratableToCarry(before, index);
    if (address &&
        ((!probe && !binding.driver.empty()) || !binding.driverOverride.empty() || migratable)) {
      actions.emplace_back(
          BindDriver{*address, binding.driver, binding.driverOverride, migratable});
    }
  }
  return actions;
}

std::vector<Action> undoRemoval(const PhysicalFunction& before) {
  const auto bindingOf = [&](unsigned index) {
    return VfBinding{before.vfs[index].driver, before.vfs[index].driverOverride};
  };
  return recreateVfs(before, static_cast<unsigned>(before.vfs.size()), bindingOf, before.probesVfs);
}

namespace {

bool isWithoutVlan(const VfSettings& settings) {
  return !settings.vlan || (settings.vlan->id == 0 && settings.vlan->qos == 0);
}

// VLAN 0 needs nothing: without a rule for its representor a VF has no VLAN.
bool isNeeded(const MappedVf& entry, Attribute attribute) {
  if (attribute == Attribute::vlan) {
    return !isWithoutVlan(entry.settings);
  }
  return entry.required.contains(attribute);
}

std::string namesOf(const std::vector<Attribute>& attributes) {
  std::vector<std::string> names;
  for (const Attribute attribute : attributes) {
    names.emplace_back(toString(attribute));
  }
  return join(names, ", ");
}

std::string representorOf(const PhysicalFunction& pf, unsigned index) {
  return index < pf.vfs.size() ? printable(pf.vfs[index].representor) : "";
}

// How the VF gets its VLAN by a rule on the host.
std::string vlanRule(const MappedVf& entry, const PhysicalFunction& pf, unsigned index) {
  const std::string netdev = representorOf(pf, index);
  const std::string port =
      "pf" + std::to_string(pf.address.function) + "vf" + std::to_string(index);
  return ", make the VF's representor a port of a bridge with vlan_filtering, then run `bridge "
         "vlan add dev " +
         (netdev.empty() ? "REPRESENTOR" : netdev) + " vid " +
         std::to_string(entry.settings.vlan->id) + " pvid untagged`" +
         (netdev.empty() ? " with the netdev that has phys_port_name " + port : "");
}

}  // namespace

std::set<Attribute> lackingAttributes(const PhysicalFunction& pf) {
  return isSwitchdev(pf) ? std::set(legacyOnlyAttributes.begin(), legacyOnlyAttributes.end())
                         : std::set<Attribute>{};
}

void checkSwitchdev(const MappedVf& entry, const PhysicalFunction& pf, unsigned index,
                    std::vector<Objection>& objections) {
  if (!isSwitchdev(pf)) {
    return;
  }
  std::vector<Attribute> needed;
  std::ranges::copy_if(legacyOnlyAttributes, std::back_inserter(needed),
                       [&](Attribute attribute) { return isNeeded(entry, attribute); });
  if (needed.empty()) {
    return;
  }
  const std::string device = toString(pf.address);
  const std::string legacy =
      "set `embedded-switch-mode: legacy` for the PF in host.yaml and run `vfpass host apply`, or, "
      "while nothing uses its VFs, run `devlink dev eswitch set pci/" +
      device + " mode legacy`";
  const std::string rule = "remove " + namesOf(needed) + " from the mapping" +
                           (isWithoutVlan(entry.settings) ? "" : vlanRule(entry, pf, index));
  objections.push_back({toString(entry.place) + ": " + entry.name + " requires " + namesOf(needed) +
                            ", but the driver of PF " + device +
                            " cannot set that in switchdev mode",
                        legacy + "; or " + rule, ExitCode::refused});
}

std::vector<std::string> switchdevNotes(const AttachInput& input,
                                        const std::vector<Lease>& leases) {
  std::vector<std::string> notes;
  for (const auto& entry : input.mapping.vfs) {
    const auto lease =
        std::ranges::find_if(leases, [&](const Lease& each) { return each.entry == entry.name; });
    const PhysicalFunction* pf = lease == leases.end() ? nullptr : findPf(input.inventory, *lease);
    if (pf == nullptr || !isSwitchdev(*pf)) {
      continue;
    }
    std::vector<Attribute> left = differingAttributes(entry.settings, acceptedSettings(*lease));
    std::erase_if(left,
                  [&](Attribute attribute) { return !vfOf(*lease).refused.contains(attribute); });
    std::erase(left, Attribute::msixVectors);  // has a note of its own
    if (!left.empty()) {
      notes.push_back(entry.name + ": the driver of PF " + toString(pf->address) + " cannot set " +
                      namesOf(left) + " in switchdev mode; this is left out");
    }
  }
  return notes;
}

}  // namespace vfpass::plan
