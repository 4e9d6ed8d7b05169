#pragma once

#include <set>
#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// Changes that attach makes to the domain's leases.
struct LeaseChanges {
  std::vector<Lease> put;      ///< new, with changed terms, or about to run
  std::vector<Lease> plugged;  ///< of these, the ones to plug into the running domain
  std::vector<Lease> dropped;  ///< no longer in the mapping, or moved to another VF
  std::vector<Lease> drifted;  ///< of the running guest, with settings that others changed
  std::vector<Lease> renamed;  ///< the same device with the same terms, under the entry's new name
  bool terms = false;          ///< more than the state of a lease changes
};

/// The changes from the domain's leases to the `wanted` ones; those without a change become equal
/// to the earlier ones, and those to plug in get the state running.
LeaseChanges compareLeases(const AttachInput& input, std::vector<Lease>& wanted);

/// Adds problems for changes that are not possible while the guest is running: another device or
/// address for one that the guest has. Settings of the PF's switch (VLAN, rate, trust, ...) can
/// change. `companions`: the devices that the guest gets.
void checkRunning(const AttachInput& input, const LeaseChanges& changes,
                  const std::set<PciAddress>& companions, std::vector<Objection>& objections);

}  // namespace vfpass::plan
