#pragma once

#include <vector>

#include "session.hpp"
#include "subject.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::cli {

/// Decides `pf: {near: ...}` of the subject's mapping, and of those of the other mappings that name
/// a VF by its number, by the host's topology. Does nothing where no mapping says `near`.
void settleNear(Session& session, Subject& subject, const std::vector<Lease>& leases);

/// These mappings, each with its PFs by address as attach would choose them now; what has no PF
/// near enough still says `near`. For commands that ask for no domain: whose leases a mapping has
/// is told by the name or UUID that both carry.
std::vector<Mapping> nearSettled(Session& session, const Topology& topology,
                                 std::vector<Mapping> mappings);

}  // namespace vfpass::cli
