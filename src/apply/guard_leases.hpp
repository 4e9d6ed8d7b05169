#pragma once

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

/// True while the database still holds the leases as the first `done` steps recorded them. False: a
/// domain start (the prepare of the hook) or another command has taken them over, and the host
/// steps of this plan must neither continue nor be rolled back.
bool leasesAreOurs(const Plan& plan, std::size_t done, const Tools& tools);

/// The leases that an interrupted prepare or release would return to reserved and whose devices are
/// the host's by now: the lease has ended, or isHosts(). Empty for other plans.
std::vector<Lease> returnedSince(const Plan& plan, const Tools& tools);

/// Checks that newly created VFs are where the leases say and that they can be assigned; throws
/// otherwise.
void checkCreatedVfs(const CreateVfs& created, const Plan& plan, Tools& tools);

}  // namespace vfpass::apply
