#pragma once

#include <string>
#include <vector>

#include "command_session.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::commands {

/// The host's topology and its leases; for a captured tree those of an explicit --state-dir only.
report::TopologyReport topologyReport(Session& session, bool withModels);

/// Of which host and with which versions a page was made, in words: `host gpu01, vfpass 0.1.0,
/// Linux 6.12.0, mlx5_core, firmware 28.39.1002`.
std::string originOf(Session& session, const Topology& topology);

/// Of which host, and on which day, a picture was made: `host gpu01, 2026-11-28`. Without the day
/// for a captured tree.
std::string placeAndDay(const Session& session);

/// The local date, `2026-11-28`, as in host.yaml.
std::string today();

/// The leases of the same tree.
std::vector<Lease> leasesOfTree(Session& session);

/// Prints warnings about invalid values in the tree, and only the number of those after the first
/// few.
void warnOfProblems(Session& session, const Topology& topology);

/// Sets the model names of the devices, for output. Without libpci they stay empty, with a warning:
/// the output then has the devices' numbers or only their addresses.
void nameModels(Session& session, Inventory& inventory);
void nameModels(Session& session, Topology& topology);

}  // namespace vfpass::commands
