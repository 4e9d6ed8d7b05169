#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/pf_settings.hpp"

namespace vfpass::plan {

/// What creating or removing VFs of this PF disrupts on the host, one phrase each; empty if
/// nothing: a netdev below a bond, bridge or VLAN, a netdev with IP addresses, and, in legacy mode,
/// a RoCE LAG, which mlx5 disables when VFs are created (mlx5_lag_disable_change).
std::vector<std::string> disruptionsOf(const PhysicalFunction& pf,
                                       EswitchMode mode = EswitchMode::legacy);

}  // namespace vfpass::plan
