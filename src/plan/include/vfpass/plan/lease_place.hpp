#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"

namespace vfpass::plan {

/// Why a lease from a domain's metadata does not match this host as it is now: no such device,
/// another card in its place (path, serial number), the VF at another address, or a function that
/// could not be leased. `companions`: the leases of the same domain. Empty: it matches.
std::string placeFault(const Inventory& inventory, const std::vector<Lease>& companions,
                       const Lease& lease);

}  // namespace vfpass::plan
