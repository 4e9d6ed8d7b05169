#include "guard_host.hpp"

#include <algorithm>

namespace vfpass::apply {
namespace {

bool isVfioDriver(const std::string& driver) {
  return driver.ends_with("vfio-pci") || driver.ends_with("vfio_pci");
}

bool isUsed(const PhysicalFunction& pf, const Tools& tools) {
  const auto leases = tools.database.leases();
  const bool running = std::any_of(leases.begin(), leases.end(), [&](const Lease& lease) {
    return lease.pf == pf.address && lease.state != LeaseState::reserved;
  });
  return running || std::any_of(pf.vfs.begin(), pf.vfs.end(),
                                [](const VirtualFunction& vf) { return isVfioDriver(vf.driver); });
}

}  // namespace

std::optional<PciAddress> pfOfHostAction(const Action& action) {
  if (const auto* create = std::get_if<CreateVfs>(&action)) {
    return create->pf;
  }
  if (const auto* mode = std::get_if<SetEswitchMode>(&action)) {
    return mode->pf;
  }
  if (const auto* mtu = std::get_if<SetMtu>(&action)) {
    return mtu->pf;
  }
  const auto* link = std::get_if<SetLinkUp>(&action);
  return link == nullptr ? std::nullopt : std::optional(link->pf);
}

bool isOvertaken(const Plan& plan, Tools& tools) {
  const bool changesVfs = std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
    return std::holds_alternative<CreateVfs>(step.action) ||
           std::holds_alternative<RemoveVfs>(step.action);
  });
  if (plan.kind != PlanKind::host || !changesVfs) {
    return false;
  }
  const auto pfs = tools.kernel.readPfs();
  const auto locked = lockedPfs(plan);
  return std::any_of(pfs.begin(), pfs.end(), [&](const PhysicalFunction& pf) {
    return std::find(locked.begin(), locked.end(), pf.address) != locked.end() && isUsed(pf, tools);
  });
}

}  // namespace vfpass::apply
