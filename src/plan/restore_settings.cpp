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
  return withoutLibvirtSettings(lease, vfOf(lease).settings);
}

Lease withoutEarlierSettings(const Lease& earlier, Lease lease) {
  if (isVf(lease) && isVf(earlier) && sameDevice(earlier, lease)) {
    LeasedVf& vf = vfOf(lease);
    vf.settings = firstOf(vf.settings, neutralFor(vfOf(earlier).settings, vf.infiniband));
  }
  return lease;
}

VfSettings settingsToRestore(const Lease& lease) {
  const LeasedVf& vf = vfOf(lease);
  return withoutLibvirtSettings(
      lease, firstOf(lease.original.settings, neutralFor(vf.settings, vf.infiniband)));
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
  return withoutLibvirtSettings(lease, neutralFor(firstOf(vf.settings, seen), vf.infiniband));
}

}  // namespace vfpass::plan
