#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/pf_settings.hpp"

namespace vfpass::plan {

/// Who on the host notices when VFs of this PF are created or removed, a phrase each; empty:
/// nobody. A PF below a bond, bridge or VLAN, one with IP addresses, and, in legacy mode, a RoCE
/// LAG, which mlx5 takes apart when VFs are made (mlx5_lag_disable_change).
std::vector<std::string> disruptionsOf(const PhysicalFunction& pf,
                                       EswitchMode mode = EswitchMode::legacy);

}  // namespace vfpass::plan
