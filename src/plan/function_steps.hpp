#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// Steps for leases of PCI functions, beside those for VFs: nothing is created or configured there,
/// only the driver changes.

/// To the lease's VFIO driver, for attach and prepare; nothing where it is there already.
void bindFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps);

/// Back to the driver from before the first lease. A function that is gone needs nothing.
void restoreFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps);

/// Reset between two owners; libvirt skips it for a device that is already on vfio-pci.
void scrubFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps);

}  // namespace vfpass::plan
