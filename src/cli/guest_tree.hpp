#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session.hpp"
#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::cli {

/// What a domain's XML says of its PCI tree: the running one's where it runs, because that is what
/// the guest sees. Leased VFs are shown as their PFs, which have the same distances. Throws Error
/// (bad input) when libvirt has no such domain.
GuestMachine guestMachineOf(Session& session, const std::string& vm,
                            const std::vector<Lease>& leases);

/// Where this lease's device is in the guest, in the guest's own bus numbers. nullopt when the
/// domain's XML does not have it.
std::optional<PciAddress> addressInGuest(const GuestMachine& machine, const Lease& lease);

}  // namespace vfpass::cli
