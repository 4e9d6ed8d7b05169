#pragma once

#include <vector>

#include "vfpass/hypervisor_versions.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/session/command_session.hpp"
#include "vfpass/session/subject.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::session {

/// The part of the host's state that attach reads.
struct HostReading {
  Inventory inventory;  ///< with the holders of the VFs and functions concerned
  Topology topology;
  HypervisorVersions versions;
};

/// For one VM: only the devices it needs.
HostReading readHostFor(Session& session, const Subject& subject, const std::vector<Lease>& leases);

/// For all VMs with a mapping or a lease. Read once, so that the PCI tree and /proc are not walked
/// for each VM.
HostReading readHostForAll(Session& session, const std::vector<Lease>& leases);

}  // namespace vfpass::session
