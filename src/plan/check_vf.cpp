#include "vfpass/plan/check_vf.hpp"

#include "vfpass/base/text.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

std::string nameOf(const VirtualFunction& vf) {
  return "VF " + std::to_string(vf.index) + " (" + toString(vf.address) + ")";
}

void checkGroup(const VirtualFunction& vf, const std::set<Allowance>& allow,
                std::vector<Objection>& objections) {
  if (!vf.iommuGroup) {
    objections.push_back(
        {nameOf(vf) +
             " has no IOMMU group: the IOMMU is off, and a guest's DMA could reach all host memory",
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
           join(peers, ", ") + ": the guest could reach those devices without IOMMU protection",
       "enable ACS on the bridges above it (pci=config_acs=), or accept the risk with "
       "`allow: [shared-iommu-group]`"});
}

}  // namespace

std::vector<Objection> checkVf(const VirtualFunction& vf, const std::set<Allowance>& allow,
                               bool unsafeInterrupts, const std::vector<Holder>& holders) {
  std::vector<Objection> objections = objectToHolders(vf.address, holders, allow);
  if (vf.locked) {
    objections.push_back(objectionToLock(nameOf(vf)));
  }
  checkGroup(vf, allow, objections);
  if (unsafeInterrupts && !allow.contains(Allowance::unsafeInterrupts)) {
    objections.push_back(
        {nameOf(vf) + " cannot be isolated: vfio_iommu_type1 has allow_unsafe_interrupts=Y, so a "
                      "guest could inject interrupts",
         "set allow_unsafe_interrupts to N, or accept the risk with `allow: [unsafe-interrupts]`"});
  }
  return objections;
}

std::vector<Objection> checkLeasedVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                      const std::vector<Holder>& holders) {
  std::vector<Objection> objections;
  for (const auto& lease : leases) {
    if (const std::string other = otherDevice(lease, pf); !other.empty()) {
      objections.push_back({lease.entry + ": " + other,
                            "check which card is in which slot, then run `vfpass attach` again"});
      continue;
    }
    if (vfOf(lease).index >= pf.vfs.size()) {
      objections.push_back(
          {"PF " + toString(pf.address) + " has " + std::to_string(pf.vfs.size()) + " VFs, but " +
               lease.entry + " needs VF " + std::to_string(vfOf(lease).index),
           "raise its virtual-function-count in host.yaml and run `vfpass host apply`",
           ExitCode::failed});
      continue;
    }
    const VirtualFunction& vf = pf.vfs[vfOf(lease).index];
    const auto found = checkVf(vf, lease.allow, false, holders);
    objections.insert(objections.end(), found.begin(), found.end());
  }
  return objections;
}

}  // namespace vfpass::plan
