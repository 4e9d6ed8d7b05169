#pragma once

#include <optional>
#include <string>

#include "vfpass/inventory.hpp"

namespace vfpass {

/// Why a PF's VFs cannot be configured. Both are phrases: `has no IPoIB netdev, ...`, `run ...`.
struct PortFault {
  std::string what;
  std::string remedy;
};

/// The fault of a PF whose driver has detached its netdev. Linux 6.1's mlx5 does so for good when a
/// change of the eswitch mode fails on its way back, too (mlx5e_netdev_change_profile), and clears
/// its data: then a request for VFs crashes the kernel, and so does unbinding the driver
/// (CVE-2026-22996).
PortFault detachedNetdev();

/// The kernel sets the attributes of VFs only through their PF's netdev, so a PF without one has a
/// fault, except an InfiniBand PF of OFED, which has files for its VFs. nullopt: no fault.
std::optional<PortFault> faultOfPort(const PhysicalFunction& pf);

}  // namespace vfpass
