#pragma once

#include <string>
#include <vector>

#include "vfpass/plan/host_policy.hpp"

namespace vfpass::plan {

/// Everybody who would lose a VF of the PF, one phrase each: a lease, a holder, a VF on vfio-pci,
/// a netdev that is up or enslaved.
std::vector<std::string> vfUsers(const HostInput& input);

/// The users in one sentence; cut after a few, with their number.
std::string nameUsers(const std::vector<std::string>& users);

}  // namespace vfpass::plan
