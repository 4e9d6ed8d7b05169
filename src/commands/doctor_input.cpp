#include "doctor_input.hpp"

#include <chrono>
#include <ctime>
#include <iomanip>
#include <sstream>

#include "host_topology.hpp"
#include "services.hpp"
#include "subject.hpp"
#include "vfpass/error.hpp"

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
  auto requirements = doctor::requirementsOf(
      topology, nearSettled(session, topology, configuration.mappings), configuration.host, false);
  requirements.units = requiredUnits(configuration, configuration.mappings);
  return requirements;
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

namespace {

// The local date, as in host.yaml.
std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::ostringstream text;
  text << std::put_time(&parts, "%Y-%m-%d");
  return text.str();
}

}  // namespace

std::vector<Diagnosis> diagnose(Session& session, const host::Root& root, const Topology& topology,
                                const doctor::Requirements& requirements,
                                const doctor::Inquiries& inquiries) {
  auto diagnoses = doctor::examine(root, topology, requirements, inquiries);
  if (hasConfiguration(session)) {
    doctor::acceptFindings(session.configuration().accepted, today(), diagnoses);
  }
  return diagnoses;
}

doctor::Inquiries inquiriesOf(Session& session) {
  doctor::Inquiries inquiries;
  inquiries.hypervisorVersions = [&session]() -> std::optional<std::string> {
    try {
      return session.daemonVersions();
    } catch (const Error& error) {  // doctor reports the missing answer as a finding
      session.verbose(error.what());
      return std::nullopt;
    }
  };
  inquiries.runDirectory = session.options().runDirectory.relative_path().string();
  return inquiries;
}

}  // namespace vfpass::commands
