#include "plan_vf_creation.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

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
    if (address && ((!probe && !binding.driver.empty()) || !binding.driverOverride.empty())) {
      actions.emplace_back(BindDriver{*address, binding.driver, binding.driverOverride});
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

}  // namespace vfpass::plan
