#include "check_running.hpp"

#include <algorithm>

#include "decide_lease.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/plan/check_vf.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

// True when the guest would only see its frames treated differently. The driver in the guest has
// read MAC and GUIDs when it probed; libvirt sets VLAN and MAC of an <interface>.
bool onlySwitchSettingsDiffer(const Lease& earlier, const Lease& wanted) {
  if (isVf(earlier) != isVf(wanted)) {
    return false;
  }
  Lease adjusted = wanted;
  if (isVf(wanted)) {
    vfOf(adjusted).settings = vfOf(earlier).settings;
    vfOf(adjusted).required = vfOf(earlier).required;
  }
  adjusted.allow = earlier.allow;
  adjusted.persistent = earlier.persistent;
  adjusted.guest = earlier.guest;  // applies to the next start
  adjusted.edits = earlier.edits;  // also applies to the next start
  const auto differing = differingAttributes(settingsOf(wanted), settingsOf(earlier));
  const bool fixed = std::any_of(differing.begin(), differing.end(), [&](Attribute attribute) {
    return attribute == Attribute::mac || attribute == Attribute::nodeGuid ||
           attribute == Attribute::portGuid ||
           (isInterface(wanted) && attribute == Attribute::vlan);
  });
  return !fixed && sameTerms(earlier, adjusted);
}

void checkChanged(const AttachInput& input, const Lease& earlier, const Lease& lease,
                  std::vector<Objection>& objections) {
  if (!onlySwitchSettingsDiffer(earlier, lease)) {
    objections.push_back(
        {lease.entry + " is in use by the running guest: cannot replace its device",
         "`vfpass detach " + shellArgument(input.domainName) + "`, then attach again"});
  } else if (!input.scope.live && settingsOf(earlier) != settingsOf(lease)) {
    objections.push_back({lease.entry + " is in use by the running guest with different values",
                          "omit --config to change the values while the guest is running"});
  } else if (!input.scope.config && earlier.persistent && !sameTerms(earlier, lease)) {
    objections.push_back(
        {"the mapping of " + lease.entry +
             " has changed, but the device is also in the persistent configuration",
         "omit --live to set the new values in both configurations", ExitCode::badInput});
  }
}

void checkPlace(const AttachInput& input, const Lease& earlier, const Lease& lease,
                std::vector<Objection>& objections) {
  if (!input.scope.config && earlier.persistent && !sameTerms(earlier, lease)) {
    objections.push_back({lease.entry +
                              " cannot be plugged in with its persistent configuration (" +
                              toString(earlier.guest.address) + " in the guest)",
                          "omit --live to change the persistent configuration, too"});
  }
}

Objection foreignDevice(const AttachInput& input, const Lease& lease) {
  return {"the running guest has a device with the alias of " + lease.entry +
              ", which vfpass has not attached",
          unplugForeign(input.domainName, lease)};
}

void checkDevice(const AttachInput& input, const Lease& lease, std::vector<Objection>& objections) {
  if (!isVf(lease)) {
    const auto found = checkLeasedFunctions(input.inventory, {lease});
    objections.insert(objections.end(), found.begin(), found.end());
    return;
  }
  const PhysicalFunction* pf = findPf(input.inventory, lease.pf);
  if (pf != nullptr && !pf->vfs.empty()) {
    const auto found = checkLeasedVfs(*pf, {lease}, input.inventory.holders);
    objections.insert(objections.end(), found.begin(), found.end());
  }
}

}  // namespace

void checkRunning(const AttachInput& input, const LeaseChanges& changes,
                  std::vector<Objection>& objections) {
  if (!input.active) {
    return;
  }
  for (const auto& lease : changes.put) {
    const Lease* earlier = earlierLease(input, lease.entry);
    if (earlier != nullptr && input.plugged.contains(lease.entry)) {
      checkChanged(input, *earlier, lease, objections);
    } else if (earlier != nullptr) {
      checkPlace(input, *earlier, lease, objections);
    } else if (input.scope.live && input.plugged.contains(lease.entry)) {
      objections.push_back(foreignDevice(input, lease));
    }
  }
  for (const auto& lease : changes.plugged) {
    if (earlierLease(input, lease.entry) != nullptr) {  // new leases have been checked already
      checkDevice(input, lease, objections);
    }
  }
  for (const auto& lease : changes.dropped) {
    if (input.plugged.contains(lease.entry)) {
      objections.push_back(
          {lease.entry + " is no longer in the mapping, but the running guest still has it",
           "`vfpass detach " + shellArgument(input.domainName) + "`, then attach again"});
    }
  }
}

}  // namespace vfpass::plan
