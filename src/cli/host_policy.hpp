#pragma once

#include <string>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::cli {

/// Everybody who would be hurt if the PF's VFs went away, one phrase each: a lease, a VF on
/// vfio-pci or held open through VFIO, a netdev that is up or enslaved.
std::vector<std::string> vfHolders(const PhysicalFunction& pf, const std::vector<Lease>& leases);

/// The holders in one sentence; cut after a few, with their number.
std::string nameHolders(const std::vector<std::string>& holders);

/// Throws when host.yaml asks for what the PF cannot be or do: another card's serial number
/// (refused), more VFs than it has (bad input), a netdev's values where it has none.
void requireFittingPolicy(const PhysicalFunction& pf, const PfPolicy& policy);

/// Throws (refused) when a lease on this PF needs a VF that `count` would not give it.
void requireRoomForLeases(const PhysicalFunction& pf, unsigned count,
                          const std::vector<Lease>& leases);

/// Throws (refused) when an unfinished operation has to do with this PF: its recovery may remove
/// VFs, and would remove those that were made in between.
void requireNoOpenOperation(const PhysicalFunction& pf,
                            const std::vector<state::Operation>& operations);

}  // namespace vfpass::cli
