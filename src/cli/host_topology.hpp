#pragma once

#include <vector>

#include "session.hpp"
#include "vfpass/report/topology_report.hpp"

namespace vfpass::cli {

/// The host's topology with the leases on it (of a captured tree only with a --state-dir
/// that belongs to it).
report::TopologyReport topologyReport(Session& session, bool withModels);

/// The leases of that tree, likewise.
std::vector<Lease> leasesOfTree(Session& session);

/// What did not make sense while the tree was read: each on stderr, the first few of many.
void warnOfProblems(Session& session, const Topology& topology);

}  // namespace vfpass::cli
