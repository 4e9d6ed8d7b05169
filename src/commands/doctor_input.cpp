#include "doctor_input.hpp"

#include "host_topology.hpp"
#include "subject.hpp"
#include "vfpass/error.hpp"
#include "vfpass/libvirt/libvirt_hypervisor.hpp"

namespace vfpass::commands {

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

doctor::Inquiries inquiriesOf(Session& session) {
  doctor::Inquiries inquiries;
  inquiries.hypervisorVersions = [&session]() -> std::optional<std::string> {
    try {
      return libvirt::daemonVersions(session.options().connect);
    } catch (const Error& error) {  // doctor reports the missing answer as a finding
      session.verbose(error.what());
      return std::nullopt;
    }
  };
  inquiries.runDirectory = session.options().runDirectory.relative_path().string();
  return inquiries;
}

}  // namespace vfpass::commands
