#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// The lease of this entry; nullptr if there is none.
const Lease* findLease(const std::vector<Lease>& leases, const Uuid& domain,
                       const std::string& entry);

/// The domain's leases in its persistent configuration.
std::vector<Lease> persistentLeases(const std::vector<Lease>& leases, const Uuid& domain);

/// True for a VF with which a guest can be saved or move to another host: it has no teamed VF
/// meanwhile, and takes the state of a migrating one with it.
bool canMove(const Lease& lease);

/// The lease, with neutral values for what it does not state and a VF with the values `seen` has. A
/// start sets them: what somebody else left on the VF is not part of the lease.
Lease withoutLeftOvers(Lease lease, const VfSettings& seen);

/// How the device that is now at a lease's addresses differs from the leased one: its card has
/// another serial number or another place in the PCI tree, or the VF of that index has another
/// address. Empty: it is the same device. Serial numbers are compared only where both are known.
std::string otherDevice(const Lease& lease, const PhysicalFunction& pf);
std::string otherDevice(const Lease& lease, const Device& function);

/// Remedy for a device of the running guest that has the lease's alias but is not its device.
/// Anybody who can edit the domain can plug one.
std::string unplugForeign(const std::string& domainName, const Lease& lease);

/// Why a lease from a domain's metadata does not match this host as it is now: no such device,
/// another card in its place (path, serial number), the VF at another address, or a function that
/// could not be leased. `companions`: the leases of the same domain. Empty: it matches.
std::string placeFault(const Inventory& inventory, const std::vector<Lease>& companions,
                       const Lease& lease);

}  // namespace vfpass::plan
