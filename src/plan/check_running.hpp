#pragma once

#include <vector>

#include "vfpass/plan/attach.hpp"

namespace vfpass::plan {

/// What attach is about to do to a domain's leases.
struct LeaseChanges {
  const std::vector<Lease>& put;
  const std::vector<Lease>& plugged;
  const std::vector<Lease>& dropped;
};

/// Objects to what cannot be done while the guest runs: another device or address for one that the
/// guest has. What the PF's switch does to its frames (VLAN, rate, trust, ...) can change.
void checkRunning(const AttachInput& input, const LeaseChanges& changes,
                  std::vector<Objection>& objections);

}  // namespace vfpass::plan
