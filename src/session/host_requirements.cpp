#include "vfpass/session/host_requirements.hpp"

#include "vfpass/session/host_topology.hpp"
#include "vfpass/session/settle_near.hpp"

namespace vfpass::session {

bool hasConfiguration(const Session& session) {
  return session.options().sysroot == "/" ||
         session.options().configDirectory != GlobalOptions{}.configDirectory;
}

doctor::Requirements requirementsOfHost(Session& session, const Topology& topology) {
  if (!hasConfiguration(session)) {
    return {};
  }
  const auto& configuration = session.configuration();
  return doctor::requirementsOf(topology, nearSettled(session, topology, configuration.mappings),
                                configuration.host, false);
}

void addLeases(Session& session, doctor::Requirements& requirements) {
  try {
    for (const Lease& lease : leasesOfTree(session)) {
      requirements.leased.push_back(lease.pf);
    }
  } catch (const Error& error) {
    session.warn(error.what());
  }
}

}  // namespace vfpass::session
