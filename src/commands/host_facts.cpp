#include "host_facts.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iomanip>
#include <set>
#include <sstream>

#include "guest_devices.hpp"
#include "subject.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/fabric_manager.hpp"
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

PartitionAnswer askForPartitions(const host::Root& root) {
  PartitionAnswer answer;
  const std::string fmpm = root.isLive() ? host::findFmpm(root) : "";
  answer.installed = !fmpm.empty();
  try {
    if (answer.installed) {
      answer.partitions = host::readPartitions(fmpm, deadlines::fabricAnswer);
    } else if (root.isLive()) {
      answer.problem =
          "fmpm is not installed on this host, so it is not known whether the fabric manager has a "
          "partition with exactly these GPUs";
    } else if (const auto recorded = root.readText("vfpass/fabric-partitions")) {
      answer.partitions = host::parsePartitions(*recorded);
    }
  } catch (const Error& error) {
    answer.problem = withRemedy(error);
  }
  return answer;
}

namespace {

std::string firstLine(const std::optional<std::string>& text) {
  return text ? text->substr(0, text->find('\n')) : "";
}

// The drivers of the NICs with the version of those that have one (OFED's), and their firmware.
std::vector<std::string> nicVersions(const host::Root& root, const Topology& topology) {
  std::set<std::string> drivers;
  std::set<std::string> firmware;
  for (const Device& function : topology.functions) {
    if (function.rdma.empty() || function.driver.empty()) {
      continue;
    }
    const auto version = firstLine(root.readText("sys/module/" + function.driver + "/version"));
    drivers.insert(function.driver + (version.empty() ? "" : " " + version));
    firmware.insert(function.rdma.front().firmware);
  }
  firmware.erase("");
  std::vector<std::string> parts(drivers.begin(), drivers.end());
  if (!firmware.empty()) {
    parts.push_back("firmware " + join({firmware.begin(), firmware.end()}, " and "));
  }
  return parts;
}

std::string placeOf(const host::Root& root) {
  const std::string name = firstLine(root.readText("proc/sys/kernel/hostname"));
  return name.empty() ? "a captured tree" : "host " + name;
}

}  // namespace

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::ostringstream text;
  text << std::put_time(&parts, "%Y-%m-%d");
  return text.str();
}

std::string placeAndDay(const Session& session) {
  const host::Root root = session.root();
  return printable(placeOf(root) + (root.isLive() ? ", " + today() : ""));
}

std::string originOf(Session& session, const Topology& topology) {
  const host::Root root = session.root();
  std::vector<std::string> parts{placeOf(root), "vfpass " VFPASS_VERSION};
  const std::string release = firstLine(root.readText("proc/sys/kernel/osrelease"));
  if (!release.empty()) {
    parts.push_back("Linux " + release);
  }
  for (auto& part : nicVersions(root, topology)) {
    parts.push_back(std::move(part));
  }
  return printable(join(parts, ", "));
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
    session.warn("no model names: " + withRemedy(error));
  }
}

}  // namespace

void nameModels(Session& session, Inventory& inventory) { nameDevices(session, inventory); }
void nameModels(Session& session, Topology& topology) { nameDevices(session, topology); }

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
  for (const Mapping& mapping : configuration.mappings) {
    addBackend(session, topology, mapping, requirements);
  }
  return requirements;
}

void addBackend(Session& session, const Topology& topology, const Mapping& mapping,
                doctor::Requirements& requirements) {
  const auto uses = iommufdUsesOf(session, mapping, topology, "");
  requirements.iommufd.insert(requirements.iommufd.end(), uses.begin(), uses.end());
  if (const auto lost = peersLostBy(session, mapping, topology, "")) {
    requirements.peers.push_back(*lost);
  }
}

void addLeases(Session& session, doctor::Requirements& requirements) {
  try {
    doctor::addLeases(leasesOfTree(session), requirements);
    if (session.options().sysroot == "/") {
      requirements.quarantined = session.quarantined();
    }
  } catch (const Error& error) {
    session.warn(withRemedy(error));
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

doctor::Inquiries inquiriesOf(Session& session,
                              const std::function<void(const Error&)>& onSilence) {
  doctor::Inquiries inquiries;
  inquiries.hypervisorVersions = [&session, onSilence]() -> std::optional<std::string> {
    try {
      return session.daemonVersions();
    } catch (const Error& error) {
      if (onSilence) {
        onSilence(error);
      } else {
        session.verbose(error.what());  // doctor reports the missing answer as a finding
      }
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
