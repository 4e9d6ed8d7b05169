#include "guard_leases.hpp"

#include <algorithm>

#include "vfpass/plan/check_vf.hpp"

namespace vfpass::apply {
namespace {

bool holds(const std::vector<Lease>& leases, const Uuid& domain, const std::string& vfName,
           std::uint64_t generation, LeaseState state) {
  return std::any_of(leases.begin(), leases.end(), [&](const Lease& lease) {
    return lease.domain == domain && lease.vfName == vfName && lease.generation == generation &&
           lease.state == state;
  });
}

}  // namespace

bool leasesAreOurs(const Plan& plan, const Tools& tools) {
  const auto leases = tools.database.leasesOf(plan.domain);
  return std::all_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    if (const auto* record = std::get_if<RecordLease>(&step.action)) {
      return holds(leases, record->lease.domain, record->lease.vfName, record->lease.generation,
                   record->lease.state);
    }
    if (const auto* drop = std::get_if<DropLease>(&step.action)) {
      // A lease that has begun to run since then belongs to the start, not to the detach.
      return std::none_of(leases.begin(), leases.end(), [&](const Lease& lease) {
        return lease.vfName == drop->vfName && lease.generation == drop->generation &&
               lease.bootId == tools.kernel.bootId() && lease.state == LeaseState::starting;
      });
    }
    return true;
  });
}

void checkCreatedVfs(const CreateVfs& created, const Plan& plan, Tools& tools) {
  std::vector<Lease> leases;
  for (const auto& step : plan.steps) {
    const auto* record = std::get_if<RecordLease>(&step.action);
    if (record != nullptr && record->lease.pf == created.pf) {
      leases.push_back(record->lease);
    }
  }
  plan::throwObjections("the new VFs of PF " + toString(created.pf) + " cannot be used",
                        plan::checkLeasedVfs(tools.kernel.readPf(created.pf), leases));
}

}  // namespace vfpass::apply
