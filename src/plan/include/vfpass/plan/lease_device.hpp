#pragma once

#include <string>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// Why the device that is now at the addresses of a lease is another one than was leased: its card
/// has another serial number or another place in the PCI tree, or the VF of that index is at
/// another address. Empty: it is the same. A serial number counts only where both are known.
std::string otherDevice(const Lease& lease, const PhysicalFunction& pf);
std::string otherDevice(const Lease& lease, const PciFunction& function);

}  // namespace vfpass::plan
