#pragma once

#include <optional>
#include <vector>

#include "vfpass/hypervisor.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/peer_mapping.hpp"
#include "vfpass/session/command_session.hpp"

namespace vfpass::session {

/// Whether the domain's devices can reach each other's BARs: determined from the files that the
/// running QEMU has open for the leased devices if those are readable (which needs root), otherwise
/// from the domain XML. nullopt: the domain has fewer than two of the host's devices.
std::optional<PeerMapping> peerMappingOf(Session& session, const DomainDescription& domain,
                                         const std::vector<Lease>& leases);

}  // namespace vfpass::session
