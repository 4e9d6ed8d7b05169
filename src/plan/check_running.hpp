#pragma once

#include <vector>

#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// Lease changes that attach is about to make.
struct LeaseChanges {
  const std::vector<Lease>& put;
  const std::vector<Lease>& plugged;
  const std::vector<Lease>& dropped;
};

/// Adds problems for changes that are not possible while the guest is running: another device or
/// address for one that the guest has. Settings of the PF's switch (VLAN, rate, trust, ...) can
/// change.
void checkRunning(const AttachInput& input, const LeaseChanges& changes,
                  std::vector<Objection>& objections);

}  // namespace vfpass::plan
