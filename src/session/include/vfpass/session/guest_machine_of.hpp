#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/session/command_session.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::session {

/// The PCI tree in a domain's XML: in the live XML if the domain is running, because that is what
/// the guest sees. Leased VFs are represented by their PFs, which have the same distances. Throws
/// Error (bad input) if libvirt has no such domain.
GuestMachine guestMachineOf(Session& session, const std::string& vm,
                            const std::vector<Lease>& leases);

/// The address of this lease's device in the guest, with the guest's own bus numbers. nullopt if
/// the domain XML does not have the device.
std::optional<PciAddress> addressInGuest(const GuestMachine& machine, const Lease& lease);

}  // namespace vfpass::session
