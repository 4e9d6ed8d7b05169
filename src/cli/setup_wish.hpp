#pragma once

#include "session.hpp"
#include "vfpass/guest/setup_view.hpp"
#include "vfpass/guest/setup_wish.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/mapping.hpp"

namespace vfpass::cli {

/// What the mapping wants of the VFs that the running guest has.
guest::SetupWish setupWish(const Mapping& mapping, const DomainDescription& domain,
                           const std::vector<Lease>& leases);

/// Adds what takes a look at the guest: where each port is on its PCI tree, and the topology file
/// for NCCL, which is of use only with GPUs and names the guest's own addresses.
void completeWish(Session& session, const std::vector<Lease>& leases, const guest::SetupView& view,
                  guest::SetupWish& wish);

}  // namespace vfpass::cli
