#include "host_requirements.hpp"

#include "host_topology.hpp"
#include "subject.hpp"
#include "vfpass/base/text.hpp"
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
    if (session.options().sysroot == "/") {
      requirements.quarantined = session.quarantined();
    }
  } catch (const Error& error) {
    session.warn(error.what());
  }
}

std::vector<Diagnosis> diagnose(Session& session, const host::Root& root, const Topology& topology,
                                const doctor::Requirements& requirements,
                                const doctor::Inquiries& inquiries) {
  auto diagnoses = doctor::examine(root, topology, requirements, inquiries);
  session.progress().clear();
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
  inquiries.onCheck = [&session](std::string_view check) {
    session.progress().show("check " + std::string(check));
  };
  inquiries.runDirectory = session.options().runDirectory.relative_path().string();
  return inquiries;
}

namespace {

// How libvirt and the hook are; empty if the hook will be called.
std::string hookProblem(Session& session, const host::Root& root) {
  const std::string remedy = "; run `vfpass hook install`";
  if (!doctor::isHookInstalled(root)) {
    return "the qemu hook is not installed: starts do not prepare the VM's devices" + remedy;
  }
  const auto runs = session.options().runDirectory.relative_path().string();
  if (doctor::hookKnowledge(root, runs) == doctor::HookKnowledge::stale) {
    return "libvirt does not call the qemu hook: it started before the hook was installed" + remedy;
  }
  return {};
}

}  // namespace

std::vector<doctor::RequiredUnit> requiredUnits(const config::Configuration& configuration,
                                                const std::vector<Mapping>& mappings) {
  std::vector<doctor::RequiredUnit> units;
  if (!configuration.host.pfs.empty()) {
    units.push_back({"vfpass-host.service", "host.yaml has settings of PFs"});
  } else if (configuration.host.gpuMemoryCheck) {
    units.push_back({"vfpass-host.service", "host.yaml has `gpu-memory-check: true`"});
  }
  if (!configuration.softRoce.empty()) {
    units.push_back({"vfpass-soft-roce.service", "host.yaml has SoftRoCE links"});
  }
  std::vector<std::string> verified;
  for (const Mapping& mapping : mappings) {
    if (mapping.verify.onStart) {
      verified.push_back(printable(mapping.vm));
    }
  }
  if (!verified.empty()) {
    units.push_back(
        {"vfpass-verify.path", "`verify: {on-start: report}` of " + join(verified, ", ")});
  }
  return units;
}

std::vector<std::string> missingServices(Session& session, const std::vector<Mapping>& mappings) {
  const host::Root root = session.root();
  if (!root.isLive()) {
    return {};
  }
  std::vector<std::string> lines;
  if (std::string line = hookProblem(session, root); !line.empty()) {
    lines.push_back(std::move(line));
  }
  if (!doctor::hasSystemd(root)) {
    return lines;
  }
  for (const auto& [name, why] : requiredUnits(session.configuration(), mappings)) {
    if (!doctor::isEnabled(root, name)) {
      lines.push_back(name + " is not enabled, but needed: " + why +
                      "; run `systemctl enable --now " + name + "`");
    }
  }
  return lines;
}

}  // namespace vfpass::commands
