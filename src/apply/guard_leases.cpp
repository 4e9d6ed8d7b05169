#include "guard_leases.hpp"

#include <algorithm>

#include "vfpass/apply/host_devices.hpp"
#include "vfpass/plan/check_device.hpp"

namespace vfpass::apply {
namespace {

// A guest that stops returns its leases to reserved; they are still the recorded ones.
bool holds(const std::vector<Lease>& leases, const Lease& recorded) {
  return std::any_of(leases.begin(), leases.end(), [&](const Lease& lease) {
    const bool released =
        recorded.state == LeaseState::running && lease.state == LeaseState::reserved;
    return lease.entry == recorded.entry && lease.generation == recorded.generation &&
           (lease.state == recorded.state || released);
  });
}

// A lease that a domain start has taken over belongs to that start.
bool isStarting(const std::vector<Lease>& leases, const std::string& entry,
                std::uint64_t generation, const Tools& tools) {
  return std::any_of(leases.begin(), leases.end(), [&](const Lease& lease) {
    return lease.entry == entry && lease.generation == generation &&
           lease.bootId == tools.kernel.bootId() && lease.state == LeaseState::starting;
  });
}

}  // namespace

bool leasesAreOurs(const Plan& plan, std::size_t done, const Tools& tools) {
  const auto leases = tools.database.leasesOf(plan.domain);
  const auto isOurs = [&](const Action& action, bool performed) {
    if (const auto* record = std::get_if<RecordLease>(&action)) {
      const Lease& lease = record->lease;
      return performed ? holds(leases, lease)
                       : !isStarting(leases, lease.entry, lease.generation, tools);
    }
    const auto* drop = std::get_if<DropLease>(&action);
    return drop == nullptr || !isStarting(leases, drop->entry, drop->generation, tools);
  };
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    if (!isOurs(plan.steps[at].action, at < done)) {
      return false;
    }
  }
  return true;
}

std::vector<Lease> returnedSince(const Plan& plan, const Tools& tools) {
  std::vector<Lease> returned;
  if (plan.kind != PlanKind::prepare && plan.kind != PlanKind::release) {
    return returned;
  }
  const auto leases = tools.database.leasesOf(plan.domain);
  const auto open = tools.database.openOperations();
  for (const Step& step : plan.steps) {
    const auto* record = std::get_if<RecordLease>(&step.action);
    const bool held = record != nullptr && std::ranges::any_of(leases, [&](const Lease& lease) {
                        return lease.entry == record->lease.entry &&
                               lease.generation == record->lease.generation &&
                               !isHosts(lease, open);
                      });
    if (record != nullptr && !held) {
      returned.push_back(record->lease);
    }
  }
  return returned;
}

void checkCreatedVfs(const CreateVfs& created, const Plan& plan, Tools& tools) {
  std::vector<Lease> leases;
  for (const auto& step : plan.steps) {
    const auto* record = std::get_if<RecordLease>(&step.action);
    if (record != nullptr && isVf(record->lease) && record->lease.pf == created.pf) {
      leases.push_back(record->lease);
    }
  }
  std::vector<PciAddress> vfs;
  for (const auto& lease : leases) {
    vfs.push_back(lease.vf);
  }
  plan::throwObjections(
      "cannot use the new VFs of PF " + toString(created.pf),
      plan::checkLeasedVfs(tools.kernel.readPf(created.pf), leases, tools.kernel.findHolders(vfs)));
}

}  // namespace vfpass::apply
