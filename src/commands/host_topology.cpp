#include "host_topology.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/inventory/model_names.hpp"
#include "vfpass/inventory/read_inventory.hpp"

namespace vfpass::commands {

report::TopologyReport topologyReport(Session& session, bool withModels) {
  report::TopologyReport report;
  report.topology = inventory::readTopology(session.root());
  if (withModels) {
    nameModels(session, report.topology);
  }
  report.leases = leasesOfTree(session);
  return report;
}

std::vector<Lease> leasesOfTree(Session& session) {
  // This host's leases do not apply to a captured tree; only an explicit --state-dir does.
  const bool named = session.options().stateDirectory != GlobalOptions{}.stateDirectory;
  return session.options().sysroot == "/" || named ? session.readLeases() : std::vector<Lease>{};
}

void warnOfProblems(Session& session, const Topology& topology) {
  constexpr std::size_t shown = 8;
  const auto& problems = topology.problems;
  for (std::size_t i = 0; i < std::min(shown, problems.size()); ++i) {
    session.warn(printable(problems[i].object) + ": " + printable(problems[i].what));
  }
  if (problems.size() > shown) {
    session.warn(std::to_string(problems.size() - shown) + " more problems in the PCI tree");
  }
}

namespace {

template <typename Devices>
void nameDevices(Session& session, Devices& devices) {
  try {
    inventory::nameModels(devices);
  } catch (const Error& error) {
    session.warn(std::string("no model names: ") + error.what() + "; " + error.remedy());
  }
}

}  // namespace

void nameModels(Session& session, Inventory& inventory) { nameDevices(session, inventory); }
void nameModels(Session& session, Topology& topology) { nameDevices(session, topology); }

}  // namespace vfpass::commands
