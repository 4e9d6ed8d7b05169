#include "host_topology.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/inventory/read_topology.hpp"

namespace vfpass::cli {

report::TopologyReport topologyReport(Session& session, bool withModels) {
  report::TopologyReport report;
  report.topology = inventory::readTopology(session.root());
  if (withModels) {
    inventory::nameModels(report.topology);
  }
  report.leases = leasesOfTree(session);
  return report;
}

std::vector<Lease> leasesOfTree(Session& session) {
  // This host's leases have nothing to do with a captured tree; those of a folder that was named
  // for it have.
  const bool named = session.options().stateDirectory != GlobalOptions{}.stateDirectory;
  return session.options().sysroot == "/" || named ? session.readLeases() : std::vector<Lease>{};
}

void warnOfProblems(Session& session, const Topology& topology) {
  constexpr std::size_t told = 8;
  const auto& problems = topology.problems;
  for (std::size_t i = 0; i < std::min(told, problems.size()); ++i) {
    session.warn(printable(problems[i].object) + ": " + printable(problems[i].what));
  }
  if (problems.size() > told) {
    session.warn("and " + std::to_string(problems.size() - told) + " more like that");
  }
}

}  // namespace vfpass::cli
