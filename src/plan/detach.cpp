#include "vfpass/plan/detach.hpp"

#include <algorithm>
#include <map>

#include "form.hpp"
#include "restore_settings.hpp"

namespace vfpass::plan {
namespace {

bool contains(const std::vector<Lease>& leases, const Lease& lease) {
  return std::any_of(leases.begin(), leases.end(), [&](const Lease& each) {
    return each.domain == lease.domain && each.vfName == lease.vfName;
  });
}

bool isInUse(const VirtualFunction& vf) {
  return vf.driver == "vfio-pci" ||
         std::any_of(vf.netdevs.begin(), vf.netdevs.end(),
                     [](const Netdev& netdev) { return netdev.up || netdev.enslaved; });
}

// Writing 0 to a PF's VF count takes away every VF of it. Only the last lease may, only if vfpass
// made the VFs, and only if nobody else uses one.
bool mayRemoveVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                  const std::vector<Lease>& allLeases) {
  const bool ours = std::all_of(leases.begin(), leases.end(),
                                [](const Lease& lease) { return lease.original.created; });
  const bool leased = std::any_of(allLeases.begin(), allLeases.end(), [&](const Lease& lease) {
    return lease.pf == pf.address && !contains(leases, lease);
  });
  const bool used = std::any_of(pf.vfs.begin(), pf.vfs.end(), [&](const VirtualFunction& vf) {
    const bool leasedHere = std::any_of(leases.begin(), leases.end(), [&](const Lease& lease) {
      return lease.vfIndex == vf.index;
    });
    return !leasedHere && isInUse(vf);
  });
  return ours && !leased && !used;
}

void restoreBinding(const Lease& lease, const VirtualFunction& vf, bool removed,
                    std::vector<Step>& steps) {
  if (lease.managed) {
    return;  // libvirt has given the device back itself
  }
  BindDriver bind{vf.address, lease.original.driver, lease.original.driverOverride};
  if (removed) {
    bind = {vf.address, "", ""};
  }
  if (bind.driver != vf.driver || bind.driverOverride != vf.driverOverride) {
    steps.push_back({bind, {}, "the driver it had before " + lease.vfName + " was attached"});
  }
}

void restorePf(const PhysicalFunction& pf, const std::vector<Lease>& leases,
               const std::vector<Lease>& allLeases, std::vector<Step>& steps) {
  const bool removed = mayRemoveVfs(pf, leases, allLeases);
  ConfigureVfs configure{pf.address, {}};
  std::vector<Step> afterwards;
  for (const auto& lease : leases) {
    if (lease.vfIndex >= pf.vfs.size()) {
      continue;
    }
    const VirtualFunction& vf = pf.vfs[lease.vfIndex];
    if (lease.state != LeaseState::reserved && vf.driver == "vfio-pci") {
      steps.push_back({ResetFunction{vf.address}, {}, "no release has scrubbed it"});
    }
    configure.vfs.push_back({lease.vfIndex, settingsToRestore(lease), {}});
    if (!removed) {
      const Reprobe reprobe = reprobeAround(lease, vf, settingsToRestore(lease));
      steps.insert(steps.end(), reprobe.before.begin(), reprobe.before.end());
      afterwards.insert(afterwards.end(), reprobe.after.begin(), reprobe.after.end());
    }
  }
  if (!removed && !configure.vfs.empty()) {
    steps.push_back({configure, {}, "the values from before the attach"});
  }
  steps.insert(steps.end(), afterwards.begin(), afterwards.end());
  // The driver comes last: it reads the MAC when it probes.
  for (const auto& lease : leases) {
    if (lease.vfIndex < pf.vfs.size()) {
      restoreBinding(lease, pf.vfs[lease.vfIndex], removed, steps);
    }
  }
  if (removed && !pf.vfs.empty()) {
    steps.push_back(
        {RemoveVfs{pf.address}, {}, "the PF had none, and no lease needs them any more"});
  }
}

}  // namespace

std::vector<Step> planRestore(const std::vector<Lease>& leases, const std::vector<Lease>& allLeases,
                              const Inventory& inventory) {
  std::map<PciAddress, std::vector<Lease>> byPf;
  for (const auto& lease : leases) {
    byPf[lease.pf].push_back(lease);
  }
  std::vector<Step> steps;
  for (const auto& [address, pfLeases] : byPf) {
    if (const PhysicalFunction* pf = findPf(inventory, address)) {
      restorePf(*pf, pfLeases, allLeases, steps);
    }
  }
  for (const auto& lease : leases) {
    steps.push_back({DropLease{lease.domain, lease.vfName, lease.generation}, {}, "detached"});
  }
  return steps;
}

Plan planDetach(const Uuid& domain, const std::string& domainName, const std::vector<Lease>& leases,
                const std::vector<Lease>& allLeases, const Inventory& inventory, bool xmlIsOurs) {
  Plan plan{PlanKind::detach, domain, domainName, {}, {}};
  if (xmlIsOurs) {
    plan.steps.push_back({EditDomain{domain, {}},
                          {EditDomain{domain, leases}},
                          "the XML as it was before the attach"});
  }
  auto restore = planRestore(leases, allLeases, inventory);
  plan.steps.insert(plan.steps.end(), restore.begin(), restore.end());
  return plan;
}

}  // namespace vfpass::plan
