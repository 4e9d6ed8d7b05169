#include "host_policy_objections.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/host_policy.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::plan {
namespace {

// How many of them an objection lists.
constexpr std::size_t namedUsers = 4;
constexpr std::size_t namedRemedies = 3;

std::string vfName(const VirtualFunction& vf) {
  return "VF " + std::to_string(vf.index) + " (" + toString(vf.address) + ")";
}

void addNetdevs(const VirtualFunction& vf, std::vector<std::string>& users) {
  for (const auto& netdev : vf.netdevs) {
    if (netdev.up || netdev.enslaved) {
      users.push_back("VF " + std::to_string(vf.index) + "'s netdev " + printable(netdev.name) +
                      (netdev.enslaved ? " is in a bond or bridge" : " is up"));
    }
  }
}

void addVfio(const VirtualFunction& vf, std::vector<std::string>& users) {
  if (vf.vfioInUse) {
    users.push_back(vfName(vf) + " is held open through VFIO");
  } else if (vf.driver.ends_with("vfio-pci") || vf.driver.ends_with("vfio_pci")) {
    users.push_back(vfName(vf) + " is bound to " + vf.driver);
  }
}

void addVf(const HostInput& input, const VirtualFunction& vf, std::vector<std::string>& users) {
  bool held = false;
  for (const auto& holder : input.holders) {
    if (holder.device == vf.address) {
      users.push_back(vfName(vf) + ": " + holder.description);
      held = true;
    }
  }
  if (!held) {
    addVfio(vf, users);
    addNetdevs(vf, users);
  }
}

// Users of the PF's VFs, one phrase each: a lease, a holder, a VF bound to vfio-pci, a netdev that
// is up or enslaved.
std::vector<std::string> vfUsers(const HostInput& input) {
  std::vector<std::string> users;
  for (const auto& lease : input.leases) {
    if (lease.pf == input.pf.address) {
      const auto vf = vfIndexOf(lease);
      users.push_back((vf ? "VF " + std::to_string(*vf) : describeDevice(lease)) +
                      " is leased to domain " + printable(lease.domainName));
    }
  }
  for (const auto& vf : input.pf.vfs) {
    addVf(input, vf, users);
  }
  return users;
}

void checkSerial(const HostInput& input, std::vector<Objection>& objections) {
  const auto& [pf, policy] = std::tie(input.pf, input.policy);
  if (policy.serial && *policy.serial != pf.serial) {
    objections.push_back({toString(policy.place) + ": " + nameOf(pf) + " has " +
                              (pf.serial.empty() ? "no readable serial number"
                                                 : "serial number " + printable(pf.serial)) +
                              ", but host.yaml expects " + printable(*policy.serial),
                          "check whether the card was moved or replaced, then correct host.yaml"});
  }
}

// The settings of a PF are its port's, except the VFs.
std::vector<std::string> portKeys(const PfPolicy& policy) {
  std::vector<std::string> keys;
  if (policy.mtu) {
    keys.emplace_back("`mtu`");
  }
  if (policy.up) {
    keys.emplace_back("`up`");
  }
  if (policy.eswitchMode) {
    keys.emplace_back("`embedded-switch-mode`");
  }
  return keys;
}

// A port with a fault has no netdev, and its mode is not read (SystemKernel::readPfSettings).
void checkPort(const HostInput& input, std::vector<Objection>& objections) {
  const auto& [pf, policy] = std::tie(input.pf, input.policy);
  const std::string subject = toString(policy.place) + ": " + nameOf(pf);
  const auto keys = portKeys(policy);
  const auto fault = faultOfPort(pf);
  if (fault && !keys.empty()) {
    objections.push_back({subject + ": cannot set " + join(keys, " and ") + ": it " + fault->what,
                          fault->remedy, ExitCode::failed});
  } else if (pf.netdev().empty() && (policy.mtu || policy.up)) {
    objections.push_back({subject + " has no netdev for `mtu` or `up`",
                          "load ib_ipoib, or remove both from host.yaml", ExitCode::failed});
  }
}

void checkMode(const HostInput& input, std::vector<Objection>& objections) {
  const std::string place = toString(input.policy.place) + ": ";
  if (!input.policy.eswitchMode) {
    return;
  }
  if (!parseEswitchMode(*input.policy.eswitchMode)) {
    objections.push_back({place + "embedded-switch-mode " + printable(*input.policy.eswitchMode) +
                              " is neither legacy nor switchdev",
                          "write `legacy` or `switchdev`", ExitCode::badInput});
  } else if (input.observable && !input.settings.eswitchMode && !faultOfPort(input.pf)) {
    objections.push_back(
        {place + nameOf(input.pf) +
             ": cannot set the eswitch mode: its driver reports no eswitch mode over devlink",
         "load a driver that supports it, or remove `embedded-switch-mode` from host.yaml",
         ExitCode::failed});
  }
}

void checkOpenWork(const HostInput& input, std::vector<Objection>& objections) {
  for (const auto& plan : input.openWork) {
    const auto pfs = lockedPfs(plan);
    if (std::ranges::find(pfs, input.pf.address) != pfs.end()) {
      objections.push_back(
          {nameOf(input.pf) + ": in use by an unfinished operation: " + describeWork(plan),
           "wait until it completes, or run `vfpass recover`; then run `vfpass host apply` again"});
    }
  }
}

void checkLeasedIndexes(const HostInput& input, unsigned count,
                        std::vector<Objection>& objections) {
  for (const auto& lease : input.leases) {
    if (isVfOf(lease, input.pf.address) && vfOf(lease).index >= count) {
      objections.push_back(
          {nameOf(input.pf) + ": cannot change to " + std::to_string(count) + " VFs: VF " +
               std::to_string(vfOf(lease).index) + " is leased to domain " +
               printable(lease.domainName),
           "raise virtual-function-count, or run `vfpass detach` on that VM first"});
    }
  }
}

// A new VF at its address would have another state than the one that somebody has to look at, and
// no guest gets the VFs of a PF in quarantine.
void checkQuarantinedVfs(const HostInput& input, std::vector<Objection>& objections) {
  append(checkQuarantine(nameOf(input.pf) + ": cannot create its VFs: it", input.pf.address,
                         input.quarantined),
         objections);
  for (const VirtualFunction& vf : input.pf.vfs) {
    append(checkQuarantine(nameOf(input.pf) + ": cannot create its VFs again: " + vfName(vf),
                           vf.address, input.quarantined),
           objections);
  }
}

// Those whose definitions name a VF that would be gone.
std::vector<DeviceUser> usersOfRemoved(const HostInput& input, unsigned count) {
  std::vector<DeviceUser> users;
  for (const VirtualFunction& vf : input.pf.vfs) {
    for (const DeviceUser& user : input.users) {
      if (vf.index >= count && user.device == vf.address &&
          user.kind != DeviceUser::Kind::pfsNetwork) {
        users.push_back(user);
      }
    }
  }
  return users;
}

// Such a domain does not run, or the VF has a holder. VFs below the count come back under their
// address.
void checkDefinedUsers(const HostInput& input, unsigned count, std::vector<Objection>& objections) {
  const auto users = usersOfRemoved(input, count);
  if (!users.empty()) {
    objections.push_back({nameOf(input.pf) + ": cannot change to " + std::to_string(count) +
                              " VFs: " + nameDefinedUsers(input.pf, users),
                          "raise virtual-function-count, or remove the VFs from these definitions "
                          "(`virsh edit`, `virsh net-edit`)"});
  }
  if (!input.unknownUsers.empty() && count < input.pf.vfs.size()) {
    objections.push_back({nameOf(input.pf) + ": cannot change to " + std::to_string(count) +
                              " VFs: " + describeUnknown(input.unknownUsers) +
                              ", and may be VFs that are removed",
                          "raise virtual-function-count, or correct these definitions as their "
                          "warnings say (`virsh edit`, `virsh net-edit`)"});
  }
}

// The remedies of all holders, without duplicates.
std::string remedyFor(const HostInput& input) {
  std::vector<std::string> remedies;
  for (const auto& holder : input.holders) {
    const bool known = std::ranges::find(remedies, holder.remedy) != remedies.end();
    if (!known && remedies.size() < namedRemedies) {
      remedies.push_back(holder.remedy);
    }
  }
  return remedies.empty() ? "shut those VMs down and run `vfpass detach` for each"
                          : join(remedies, "; ");
}

Objection inUse(const HostInput& input, const std::string& change,
                const std::vector<std::string>& users) {
  return {"PF " + toString(input.pf.address) + ": " + change +
              " would disrupt VFs that are in use: " + joinFirst(users, namedUsers),
          remedyFor(input) + "; then run `vfpass host apply` again"};
}

}  // namespace

std::string nameOf(const PhysicalFunction& pf) {
  return "PF " + toString(pf.address) +
         (pf.netdev().empty() ? "" : " (" + printable(pf.netdev()) + ")");
}

std::string nameDefinedUsers(const PhysicalFunction& pf, const std::vector<DeviceUser>& users) {
  std::vector<std::string> phrases;
  for (const VirtualFunction& vf : pf.vfs) {
    for (const DeviceUser& user : users) {
      const bool ofPf = user.kind == DeviceUser::Kind::pfsNetwork;  // once, not for each VF
      const std::string phrase =
          (ofPf ? "the PF" : vfName(vf)) + " is named by " +
          (user.kind == DeviceUser::Kind::domain ? "domain " : "libvirt network ") +
          printable(user.name);
      if (user.device == vf.address && std::ranges::find(phrases, phrase) == phrases.end()) {
        phrases.push_back(phrase);
      }
    }
  }
  return joinFirst(phrases, namedUsers);
}

std::string describeUnknown(const std::vector<std::string>& unknown) {
  return "the devices of " + unknown.front() +
         (unknown.size() == 1 ? "" : " and " + std::to_string(unknown.size() - 1) + " more") +
         " are unknown";
}

std::vector<Objection> checkPolicy(const HostInput& input) {
  std::vector<Objection> objections;
  const auto& [pf, policy] = std::tie(input.pf, input.policy);
  const std::string place = toString(policy.place) + ": ";
  checkSerial(input, objections);
  if (policy.vfCount && *policy.vfCount > pf.totalVfs) {
    objections.push_back({place + std::to_string(*policy.vfCount) + " VFs requested, but " +
                              nameOf(pf) + " supports at most " + std::to_string(pf.totalVfs),
                          "lower virtual-function-count, or raise the limit in the NIC's "
                          "firmware and power-cycle; `vfpass doctor` names the setting (vf-count)",
                          ExitCode::badInput});
  }
  checkPort(input, objections);
  checkMode(input, objections);
  return objections;
}

std::vector<Objection> checkChanges(const HostInput& input, const HostChanges& changes) {
  std::vector<Objection> objections;
  const auto users = vfUsers(input);
  if (changes.rebuilds) {
    checkOpenWork(input, objections);
    checkQuarantinedVfs(input, objections);
    if (!input.pf.vfs.empty() && !users.empty()) {
      objections.push_back(inUse(
          input, changes.setsMode ? "changing the eswitch mode" : "changing the number of VFs",
          users));
    } else {
      checkLeasedIndexes(input, changes.count, objections);
      checkDefinedUsers(input, changes.count, objections);
    }
  }
  if (changes.takesDown && !users.empty()) {
    objections.push_back(
        inUse(input, "taking the link of " + printable(input.pf.netdev()) + " down", users));
  }
  return objections;
}

}  // namespace vfpass::plan
