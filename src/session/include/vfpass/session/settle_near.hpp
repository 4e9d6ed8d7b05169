#pragma once

#include <vector>

#include "vfpass/session/command_session.hpp"
#include "vfpass/session/subject.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::session {

/// Resolves `pf: {near: ...}` from the host's topology, in the subject's mapping and in those other
/// mappings that also claim a VF by its number. Does nothing if no mapping uses `near`.
void settleNear(Session& session, Subject& subject, const std::vector<Lease>& leases);

/// Returns the mappings with `near` replaced by the address of the PF that attach would choose now;
/// entries without a PF near enough keep `near`. For commands that do not query libvirt: a
/// mapping's leases are found by the domain's name or UUID.
std::vector<Mapping> nearSettled(Session& session, const Topology& topology,
                                 std::vector<Mapping> mappings);

}  // namespace vfpass::session
