#pragma once

#include <string>
#include <vector>

#include "vfpass/plan/host_policy.hpp"

namespace vfpass::plan {

/// Users of the PF's VFs, one phrase each: a lease, a holder, a VF bound to vfio-pci, a netdev that
/// is up or enslaved.
std::vector<std::string> vfUsers(const HostInput& input);

/// The users in one line: the first few by name, the others by their number.
std::string nameUsers(const std::vector<std::string>& users);

}  // namespace vfpass::plan
