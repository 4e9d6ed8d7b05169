#pragma once

#include "command_session.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/setup/setup_plan.hpp"
#include "vfpass/setup/setup_view.hpp"

namespace vfpass::commands {

/// The setup that the mapping describes for the VFs of the running guest.
setup::DesiredSetup desiredSetup(const Mapping& mapping, const DomainDescription& domain,
                                 const std::vector<Lease>& leases);

/// Adds the parts that depend on the guest's state: the PCI address of each port, and the topology
/// file for NCCL, which needs GPUs and contains the guest's own addresses.
void completeSetup(Session& session, const std::vector<Lease>& leases, const setup::SetupView& view,
                   setup::DesiredSetup& setup);

}  // namespace vfpass::commands
