#pragma once

#include "session.hpp"
#include "vfpass/guest/desired_setup.hpp"
#include "vfpass/guest/setup_view.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::cli {

/// The setup that the mapping describes for the VFs of the running guest.
guest::DesiredSetup desiredSetup(const Mapping& mapping, const DomainDescription& domain,
                                 const std::vector<Lease>& leases);

/// Adds the parts that depend on the guest's state: the PCI address of each port, and the topology
/// file for NCCL, which needs GPUs and contains the guest's own addresses.
void completeSetup(Session& session, const std::vector<Lease>& leases, const guest::SetupView& view,
                   guest::DesiredSetup& setup);

}  // namespace vfpass::cli
