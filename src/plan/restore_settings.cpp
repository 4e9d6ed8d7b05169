#include "restore_settings.hpp"

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
  if (isVf(lease) && isVf(earlier) && sameDevice(earlier, lease)) {
    LeasedVf& vf = vfOf(lease);
    vf.settings = firstOf(vf.settings, neutralFor(acceptedSettings(earlier), vf.infiniband));
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

std::vector<Action> undoBinding(const Lease& lease, const VirtualFunction& vf) {
  std::vector<Action> actions;
  if (!vf.driver.empty() && !differingAttributes(settingsToApply(lease), vf.settings).empty()) {
    const VfChange earlier{vfOf(lease).index, settingsToUndo(lease, vf.settings), {}};
    actions.emplace_back(ConfigureVfs{lease.pf, {earlier}});
  }
  actions.emplace_back(BindDriver{vf.address, vf.driver, vf.driverOverride});
  return actions;
}

VfSettings settingsToScrub(const Lease& lease, const VfSettings& seen) {
  const LeasedVf& vf = vfOf(lease);
  VfSettings touched = without(firstOf(vf.settings, seen), vf.refused);
  if (keepsMac(lease)) {
    touched.mac.reset();
  }
  return withoutLibvirtSettings(lease, neutralFor(touched, vf.infiniband));
}

}  // namespace vfpass::plan
