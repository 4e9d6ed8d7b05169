#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "attach_decisions.hpp"
#include "device_steps.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

bool isKept(const Lease& lease, const std::vector<Lease>& wanted) {
  return std::ranges::any_of(wanted, [&](const Lease& each) {
    return each.entry == lease.entry && isForSameDevice(each, lease);
  });
}

// Between two runs a VF holds neutral values, so that only a running guest's settings can drift.
// Values that the driver does not report are not compared, nor those that the kernel changes only
// while no driver is bound: they are set at the next start.
bool hasDrifted(const AttachInput& input, const Lease& lease) {
  const VirtualFunction* vf = findVf(input.inventory, lease);
  if (!input.scope.live || !input.plugged.contains(lease.entry) || vf == nullptr) {
    return false;
  }
  const VfSettings wanted = settingsToApply(lease);
  const auto unbound = changing(wanted, Change::unbound);
  const auto differing =
      differingAttributes(without(wanted, {unbound.begin(), unbound.end()}), vf->settings);
  return std::ranges::any_of(differing, [&](Attribute attribute) {
    return only(vf->settings, {attribute}) != VfSettings{};
  });
}

}  // namespace

LeaseChanges compareLeases(const AttachInput& input, std::vector<Lease>& wanted) {
  LeaseChanges changes;
  for (auto& lease : wanted) {
    const Lease* earlier = earlierLease(input, lease.entry);
    const bool same = earlier != nullptr && sameTerms(*earlier, lease);
    const bool plugs = input.scope.live && !input.plugged.contains(lease.entry);
    if (same) {
      lease = *earlier;
    }
    if (same && input.renamed.contains(lease.entry)) {
      lease.generation = input.generation;
      changes.renamed.push_back(lease);
      changes.terms = true;
      continue;
    }
    if (plugs) {
      lease.state = LeaseState::running;
      lease.bootId = input.bootId;
      changes.plugged.push_back(lease);
    }
    if (!same || plugs) {
      changes.put.push_back(lease);
    } else if (hasDrifted(input, lease)) {
      changes.drifted.push_back(lease);
    }
    changes.terms = changes.terms || !same;
  }
  for (const auto& lease : input.leases) {
    if (lease.domain == input.domain && !isKept(lease, wanted)) {
      changes.dropped.push_back(lease);
    }
  }
  changes.terms = changes.terms || !changes.dropped.empty();
  return changes;
}

namespace {

// True when the guest would only see its frames treated differently. The driver in the guest has
// read MAC and GUIDs when it probed; libvirt sets VLAN and MAC of an <interface>.
bool onlySwitchSettingsDiffer(const Lease& earlier, const Lease& wanted) {
  if (kindOf(earlier) != kindOf(wanted)) {
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
  const VfSettings before = settingsOf(earlier);
  const VfSettings after = settingsOf(wanted);
  const auto differing = differingAttributes(after, before);
  const bool fixed = std::ranges::any_of(differing, [&](Attribute attribute) {
    const bool immediate = !changing(only(after, {attribute}), Change::immediate).empty();
    return !immediate || (isInterface(wanted) && attribute == Attribute::vlan);
  });
  // Of an attribute that the mapping does not set any more, detach restores the value.
  const VfSettings set = only(before, changing(before, Change::unbound));
  const bool left = !differingAttributes(set, after).empty();
  return !fixed && !left && sameTerms(earlier, adjusted);
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

std::vector<Objection> checkDevice(const AttachInput& input, const Lease& lease,
                                   const std::set<PciAddress>& companions) {
  if (auto quarantined = checkQuarantine({lease}, input.inventory.quarantined);
      !quarantined.empty()) {
    return quarantined;
  }
  auto objections = checkLeasedFunctions(input.inventory, {lease}, companions);
  const PhysicalFunction* pf = findPf(input.inventory, lease);
  if (pf != nullptr && !pf->vfs.empty()) {
    append(checkLeasedVfs(*pf, {lease}, input.inventory.holders, companions), objections);
  }
  return objections;
}

}  // namespace

void checkRunning(const AttachInput& input, const LeaseChanges& changes,
                  const std::set<PciAddress>& companions, std::vector<Objection>& objections) {
  if (!input.active) {
    return;
  }
  // Leases with changes: the guest keeps what it has, and gets what its configuration has.
  for (const auto& lease : changes.put) {
    const Lease* earlier = earlierLease(input, lease.entry);
    if (earlier != nullptr && input.plugged.contains(lease.entry)) {
      checkChanged(input, *earlier, lease, objections);
    } else if (earlier != nullptr) {
      checkPlace(input, *earlier, lease, objections);
    } else if (input.scope.live && input.plugged.contains(lease.entry) &&
               !asksToAdopt(input, lease.entry)) {
      objections.push_back(foreignDevice(input, lease));
    }
  }
  // Devices to plug in; those of new leases have been checked already.
  for (const auto& lease : changes.plugged) {
    if (earlierLease(input, lease.entry) != nullptr) {
      append(checkDevice(input, lease, companions), objections);
    }
  }
  // Devices that the guest would lose.
  for (const auto& lease : changes.dropped) {
    if (input.plugged.contains(lease.entry)) {
      objections.push_back(
          {lease.entry + " is no longer in the mapping, but the running guest still has it",
           "`vfpass detach " + shellArgument(input.domainName) + "`, then attach again"});
    }
  }
}

namespace {

// The settings that a mapping requests by name.
constexpr std::array<std::string_view, 3> requestedSettings{"gpu-clique", "iommu-backend",
                                                            linkSpeedsSetting};

std::vector<DomainEdit> earlierEdits(const AttachInput& input) {
  return editsOf(persistentLeases(input.leases, input.domain));
}

bool contains(const std::vector<DomainEdit>& edits, const DomainEdit& edit) {
  return std::ranges::find(edits, edit) != edits.end();
}

void keepEdits(const AttachInput& input, std::vector<Lease>& leases) {
  for (Lease& lease : leases) {
    const Lease* earlier = earlierLease(input, lease.entry);
    lease.edits = earlier == nullptr ? std::vector<DomainEdit>() : earlier->edits;
  }
}

// All edits go to the lease that had them, so that an attach without changes changes no lease.
void assignEdits(const AttachInput& input, std::vector<DomainEdit> edits,
                 std::vector<Lease>& leases) {
  Lease* carrier = nullptr;
  for (Lease& lease : leases) {
    lease.edits.clear();
    const Lease* earlier = earlierLease(input, lease.entry);
    const bool had = earlier != nullptr && !earlier->edits.empty();
    if (lease.persistent && (carrier == nullptr || had)) {
      carrier = &lease;
    }
  }
  if (carrier != nullptr) {
    carrier->edits = std::move(edits);
  }
}

}  // namespace

bool isApplied(const Mapping& mapping, const DomainSetting& setting) {
  return setting.edit &&
         (mapping.applyDomainSettings ||
          std::ranges::find(requestedSettings, setting.name) != requestedSettings.end());
}

void assignSettings(const AttachInput& input, AttachDecision& decision) {
  append(input.settingFaults, decision.objections);
  if (!input.scope.config) {
    return keepEdits(input, decision.leases);
  }
  std::vector<DomainEdit> edits;
  const auto earlier = earlierEdits(input);
  std::vector<DomainSetting> settings = input.settings;
  std::ranges::move(linkSpeedSettings(input, decision), std::back_inserter(settings));
  for (const DomainSetting& setting : settings) {
    if (isApplied(input.mapping, setting)) {
      edits.push_back(*setting.edit);
    }
    const bool made = isApplied(input.mapping, setting) && contains(earlier, *setting.edit);
    if (!made || !input.xmlCurrent) {
      decision.settings.push_back(setting);
    }
  }
  assignEdits(input, std::move(edits), decision.leases);
}

std::vector<std::string> changedSettings(const AttachInput& input,
                                         const std::vector<Lease>& wanted) {
  if (wanted.empty()) {
    return {};  // no lease was decided
  }
  const auto before = earlierEdits(input);
  const auto after = editsOf(wanted);
  std::set<std::string> names;
  for (const DomainEdit& edit : before) {
    if (!contains(after, edit)) {
      names.insert(edit.setting);
    }
  }
  for (const DomainEdit& edit : after) {
    if (!contains(before, edit)) {
      names.insert(edit.setting);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace vfpass::plan
