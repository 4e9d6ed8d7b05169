#pragma once

#include <vector>

#include "session.hpp"
#include "subject.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/topology.hpp"
#include "vfpass/version.hpp"

namespace vfpass::cli {

/// What an attach reads of the host.
struct HostReading {
  Inventory inventory;  ///< with the holders of the VFs and functions concerned
  Topology topology;
  HypervisorVersions versions;
};

/// For one VM: nothing that only others need.
HostReading readHostFor(Session& session, const Subject& subject, const std::vector<Lease>& leases);

/// For all VMs with a mapping or a lease, read once: PCI tree and /proc would otherwise be walked
/// for each of them.
HostReading readHostForAll(Session& session, const std::vector<Lease>& leases);

}  // namespace vfpass::cli
