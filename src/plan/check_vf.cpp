#include "vfpass/plan/check_vf.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

std::string nameOf(const VirtualFunction& vf) {
  return "VF " + std::to_string(vf.index) + " (" + toString(vf.address) + ")";
}

void checkNetdevs(const VirtualFunction& vf, std::vector<Objection>& objections) {
  for (const auto& netdev : vf.netdevs) {
    if (netdev.enslaved) {
      objections.push_back({nameOf(vf) + " is in use on the host: its netdev " + netdev.name +
                                " belongs to a bond, bridge or VRF",
                            "take it out with `ip link set dev " + netdev.name + " nomaster`"});
    } else if (netdev.up) {
      objections.push_back(
          {nameOf(vf) + " is in use on the host: its netdev " + netdev.name + " is up",
           "if nothing needs it, `ip link set dev " + netdev.name + " down`"});
    }
  }
}

void checkGroup(const VirtualFunction& vf, const std::set<Allowance>& allow,
                std::vector<Objection>& objections) {
  if (!vf.iommuGroup) {
    objections.push_back({nameOf(vf) +
                              " has no IOMMU group: the IOMMU is off, and a guest's DMA could "
                              "reach all of the host's memory",
                          "enable VT-d or AMD-Vi in firmware and boot with intel_iommu=on"});
    return;
  }
  if (vf.groupPeers.empty() || allow.contains(Allowance::sharedIommuGroup)) {
    return;
  }
  std::vector<std::string> peers;
  for (const auto& peer : vf.groupPeers) {
    peers.push_back(toString(peer));
  }
  objections.push_back(
      {nameOf(vf) + " shares IOMMU group " + std::to_string(*vf.iommuGroup) + " with " +
           join(peers, ", ") + ": the guest could reach those devices past the IOMMU",
       "enable ACS on the bridges above it (pci=config_acs=), or accept the risk with "
       "`allow: [shared-iommu-group]`"});
}

void checkIdentity(const PhysicalFunction& pf, const Lease& lease,
                   std::vector<Objection>& objections) {
  if (!lease.pfSerial.empty() && !pf.serial.empty() && lease.pfSerial != pf.serial) {
    objections.push_back({"the card at " + toString(pf.address) + " has serial " +
                              printable(pf.serial) + ", not " + printable(lease.pfSerial) +
                              " as when " + lease.vfName + " was attached",
                          "check the cabling, then run `vfpass attach` again"});
  } else if (!lease.pfPath.empty() && lease.pfPath != pf.path) {
    objections.push_back({"PF " + toString(pf.address) + " is now at " + pf.path + ", not at " +
                              lease.pfPath + " as when " + lease.vfName + " was attached",
                          "cards or bus numbers have changed; run `vfpass attach` again"});
  }
}

}  // namespace

std::vector<Objection> checkVf(const VirtualFunction& vf, const std::set<Allowance>& allow,
                               bool unsafeInterrupts) {
  std::vector<Objection> objections;
  if (!allow.contains(Allowance::netdevInUse)) {
    checkNetdevs(vf, objections);
  }
  checkGroup(vf, allow, objections);
  if (vf.vfioInUse) {
    objections.push_back({nameOf(vf) + " is held open through VFIO by " +
                              (vf.vfioUser.empty() ? "another process" : printable(vf.vfioUser)),
                          "stop the virtual machine or program that uses it"});
  }
  if (unsafeInterrupts && !allow.contains(Allowance::unsafeInterrupts)) {
    objections.push_back({nameOf(vf) + " cannot be isolated: vfio_iommu_type1 runs with "
                                       "allow_unsafe_interrupts=Y, a guest could inject interrupts",
                          "set it to N, or accept the risk with `allow: [unsafe-interrupts]`"});
  }
  return objections;
}

std::vector<Objection> checkLeasedVfs(const PhysicalFunction& pf,
                                      const std::vector<Lease>& leases) {
  std::vector<Objection> objections;
  for (const auto& lease : leases) {
    checkIdentity(pf, lease, objections);
    if (lease.vfIndex >= pf.vfs.size()) {
      objections.push_back(
          {"PF " + toString(pf.address) + " has " + std::to_string(pf.vfs.size()) + " VFs, " +
               lease.vfName + " needs VF " + std::to_string(lease.vfIndex),
           "raise its virtual-function-count in host.yaml and run `vfpass host apply`",
           ExitCode::failed});
      continue;
    }
    const VirtualFunction& vf = pf.vfs[lease.vfIndex];
    if (vf.address != lease.vf) {
      objections.push_back({"VF " + std::to_string(lease.vfIndex) + " of PF " +
                                toString(pf.address) + " is at " + toString(vf.address) +
                                ", the domain's XML says " + toString(lease.vf),
                            "run `vfpass attach` again", ExitCode::failed});
      continue;
    }
    const auto found = checkVf(vf, lease.allow, false);
    objections.insert(objections.end(), found.begin(), found.end());
  }
  return objections;
}

}  // namespace vfpass::plan
