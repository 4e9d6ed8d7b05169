#include "restore_settings.hpp"

namespace vfpass::plan {
namespace {

// `first` where it has a value, otherwise `second`.
VfSettings firstOf(VfSettings first, const VfSettings& second) {
  const auto fill = [](auto& target, const auto& source) {
    if (!target) {
      target = source;
    }
  };
  fill(first.mac, second.mac);
  fill(first.vlan, second.vlan);
  fill(first.rate, second.rate);
  fill(first.spoofCheck, second.spoofCheck);
  fill(first.linkState, second.linkState);
  fill(first.trust, second.trust);
  fill(first.nodeGuid, second.nodeGuid);
  fill(first.portGuid, second.portGuid);
  return first;
}

VfSettings neutralFor(const VfSettings& touched, bool infiniband) {
  return only(neutralSettings(infiniband), differingAttributes(touched, {}));
}

}  // namespace

VfSettings settingsToRestore(const Lease& lease) {
  return firstOf(lease.original.settings, neutralFor(lease.settings, lease.infiniband));
}

VfSettings settingsToUndo(const VfSettings& wanted, const VfSettings& seen, bool infiniband) {
  return firstOf(only(seen, differingAttributes(wanted, {})), neutralFor(wanted, infiniband));
}

VfSettings settingsToScrub(const Lease& lease, const VfSettings& seen) {
  return neutralFor(firstOf(lease.settings, seen), lease.infiniband);
}

}  // namespace vfpass::plan
