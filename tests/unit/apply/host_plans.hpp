#pragma once

#include "test_host.hpp"
#include "vfpass/plan/host_policy.hpp"
#include "vfpass/plan/plan_soft_roce.hpp"

namespace vfpass::apply {

/// The host's PF with VFs bound to the host driver; others have set a MAC and a VLAN on VF 1. A
/// policy without a value.
plan::HostInput hostInput(Host& host);
/// Six VFs, another MTU, and up.
Plan planOtherCount(Host& host);
/// Three VFs in switchdev mode, which the host driver binds.
Plan planOtherMode(Host& host);

/// The links and their records, without a policy.
plan::SoftRoceInput softRoceInput(Host& host);
/// Makes rxe0 on eth0 and rxe1 on eth1.
void makeLinks(Host& host);
/// rxe1 moves to another netdev, and rxe2 replaces rxe0.
Plan planOtherLinks(Host& host);

}  // namespace vfpass::apply
