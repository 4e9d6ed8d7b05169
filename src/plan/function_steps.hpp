#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {

/// Steps for leases of PCI functions. Unlike VFs, they are neither created nor configured; only the
/// driver changes.

/// Binds the function to the lease's VFIO driver, for attach and prepare; no step if it is bound
/// already.
void bindFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps);

/// Binds the function to its driver from before the first lease; no step if the function no longer
/// exists.
void restoreFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps);

/// Resets the function between two owners; libvirt skips the reset of a device that is already
/// bound to vfio-pci.
void scrubFunction(const Lease& lease, const Inventory& inventory, std::vector<Step>& steps);

}  // namespace vfpass::plan
