#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan/objection.hpp"

namespace vfpass::plan {

/// What creating or removing VFs of this PF disrupts on the host, one phrase each; empty if
/// nothing: a netdev below a bond, bridge or VLAN, a netdev with IP addresses, and, unless it is
/// known to be in switchdev mode, a RoCE LAG, which mlx5 disables when VFs are created
/// (mlx5_lag_disable_change).
std::vector<std::string> disruptionsOf(const PhysicalFunction& pf);

/// CreateVfs::lagDevicePf of a creation.
std::optional<PciAddress> lagDevicePf(const PhysicalFunction& pf);

/// The problem with creating VFs of this PF for a VM without `allow: [disruption]`: it ends a RoCE
/// LAG. nullopt if there is none. Upper devices and addresses alone need no consent: mlx5 of Linux
/// 6.1 creates and removes VFs without a change of the PF's netdev, carrier or addresses (seen on
/// the model of a card).
std::optional<Objection> objectToCreation(const PhysicalFunction& pf,
                                          const std::set<Allowance>& allow);

}  // namespace vfpass::plan
