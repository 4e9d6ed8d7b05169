#pragma once

#include <string>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// How the device that is now at a lease's addresses differs from the leased one: its card has
/// another serial number or another place in the PCI tree, or the VF of that index has another
/// address. Empty: it is the same device. Serial numbers are compared only where both are known.
std::string otherDevice(const Lease& lease, const PhysicalFunction& pf);
std::string otherDevice(const Lease& lease, const PciFunction& function);

/// Remedy for a device of the running guest that has the lease's alias but is not its device.
/// Anybody who can edit the domain can plug one.
std::string unplugForeign(const std::string& domainName, const Lease& lease);

}  // namespace vfpass::plan
