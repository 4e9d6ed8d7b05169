#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/device.hpp"
#include "vfpass/host/root.hpp"

namespace vfpass::host {

/// What the kernel needs to create VFs of a PF: an address for each BAR of the VFs, which it
/// assigns for the maximum number of VFs at boot, and bus numbers (drivers/pci/iov.c,
/// sriov_enable).
struct VfSpace {
  std::size_t assignedBars = 0;
  std::size_t unassignedBars = 0;  ///< with one of these, the kernel creates no VF (ENOMEM)
  /// For how many VFs the bus numbers below the port above the PF suffice; nullopt: not known, such
  /// as on a root bus.
  std::optional<unsigned> numberedVfs;
};

/// Reads `resource`, the configuration space and the port above the PF, which may all be missing.
/// Without root, BARs without an address may be missing in the result.
VfSpace readVfSpace(const Root& root, const Device& pf);

/// What is missing for `count` VFs: `2 of 3 VF BARs have no address`; empty if nothing is.
std::string missingVfSpace(const VfSpace& space, unsigned count);

/// How to get it. `arguments`: those of the kernel, which name what has been tried.
std::string vfSpaceRemedy(const VfSpace& space, const std::vector<std::string>& arguments);

}  // namespace vfpass::host
