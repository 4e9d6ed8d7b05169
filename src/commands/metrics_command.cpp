#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>

#include "command_session.hpp"
#include "commands.hpp"
#include "host_facts.hpp"
#include "status_reader.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/write_file.hpp"
#include "vfpass/doctor/doctor.hpp"
#include "vfpass/host/device_statistics.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/metrics/metrics.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::commands {
namespace {

// PFs and whole functions that mappings, host.yaml and leases name.
std::set<PciAddress> devicesOf(const doctor::Requirements& requirements) {
  std::set<PciAddress> devices(requirements.functions.begin(), requirements.functions.end());
  for (const auto& vf : requirements.vfs) {
    devices.insert(vf.pf);
  }
  devices.insert(requirements.policyPfs.begin(), requirements.policyPfs.end());
  devices.insert(requirements.leased.begin(), requirements.leased.end());
  return devices;
}

/// Reads everything that `vfpass metrics` reports. A part that cannot be read is missing and marked
/// as failed, with a warning on stderr. Of a captured tree only devices and doctor are read.
class Collector {
 public:
  explicit Collector(Session& session) : session_(session), root_(session.root()) {}

  metrics::Observation collect() {
    found_.version = VFPASS_VERSION;
    attempt("devices", [this] { found_.pfs = session_.inventory().pfs; });
    attempt("counters", [this] { readCounters(); });
    if (root_.isLive()) {
      attempt("leases", [this] { readRecords(); });
      readLibvirt();
      attempt("configuration", [this] { readConfiguration(); });
      attempt("verification", [this] { readVerifications(); });
    }
    attempt("doctor", [this] { runDoctor(); });
    return std::move(found_);
  }

 private:
  template <typename Read>
  bool attempt(const char* part, Read read) {
    bool success = true;
    try {
      read();
    } catch (const Error& error) {
      session_.warn(std::string(part) + ": " + withRemedy(error));
      success = false;
    }
    found_.collected[part] = success;
    return success;
  }

  // The first PF that does not answer in time ends this part: the others would only wait, too.
  void readCounters() {
    for (const PhysicalFunction& pf : found_.pfs) {
      found_.statistics[pf.address] = host::readVfStatistics(root_, pf, deadlines::netlink);
    }
  }

  void readRecords() {
    found_.leases = session_.readLeases();
    found_.openOperations = session_.openWork().size();
    found_.quarantined = session_.readDatabase().quarantined();
  }

  // Without libvirt, leases keep the name that the domain had when it was attached.
  void readLibvirt() {
    try {
      session_.hypervisor();
      found_.libvirtUp = true;
    } catch (const Error& error) {
      session_.warn(withRemedy(error));
      found_.libvirtUp = false;
      return;
    }
    attempt("status", [this] { readStatus(); });
    if (!found_.libvirtUp.value()) {
      found_.collected.erase("status");
    }
  }

  void readStatus() {
    try {
      commands::StatusReader reader(session_);
      auto entries = reader.read("");
      found_.refused = reader.readRefused("");
      found_.entries = std::move(entries);
    } catch (const NoAnswer&) {
      found_.libvirtUp = false;
      throw;
    }
    found_.leases.emplace();
    std::ranges::transform(*found_.entries, std::back_inserter(*found_.leases),
                           &report::StatusEntry::lease);
  }

  void readConfiguration() {
    found_.configurationProblems = session_.configurationProblems().size();
    if (!found_.leases) {
      return;
    }
    for (const Mapping& mapping : session_.configuration().mappings) {
      found_.mappings[mapping.vm] = true;
    }
    for (const auto& vm :
         commands::unattachedMappings(session_.configuration().mappings, *found_.leases)) {
      found_.mappings[vm] = false;
    }
  }

  void readVerifications() {
    if (!found_.leases) {
      return;
    }
    const auto pending = commands::pendingVerifications(session_, *found_.leases);
    std::set<Uuid> seen;
    for (const Lease& lease : *found_.leases) {
      if (!seen.insert(lease.domain).second) {
        continue;
      }
      metrics::Verification last{lease.domainName, lease.domain};
      last.pending = std::ranges::find(pending, lease.domain) != pending.end();
      if (const auto kept = state::latestReport(session_.options().stateDirectory, lease.domain)) {
        last.hasReport = true;
        last.saved = report::readVerification(kept->text);
      }
      found_.verifications.push_back(std::move(last));
    }
  }

  void runDoctor() {
    const Topology topology = inventory::readTopology(root_);
    doctor::Requirements requirements = commands::requirementsOfHost(session_, topology);
    commands::addLeases(session_, requirements);
    found_.links = metrics::linksOf(topology, devicesOf(requirements));
    doctor::Inquiries inquiries = commands::inquiriesOf(session_);
    inquiries.queriesFirmware = false;
    if (!found_.libvirtUp.value_or(false)) {
      inquiries.hypervisorVersions = nullptr;  // it would wait for libvirt again
    }
    found_.diagnoses = commands::diagnose(session_, root_, topology, requirements, inquiries);
  }

  Session& session_;
  host::Root root_;
  metrics::Observation found_;
};

ExitCode writeMetrics(Session& session, const std::filesystem::path& output) {
  const std::string text = metrics::render(Collector(session).collect());
  if (output.empty()) {
    session.out() << text;
  } else {
    writeOutputFile(output, text);
  }
  return ExitCode::done;
}

}  // namespace

void addMetrics(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "metrics",
      "Print metrics of VFs, leases, drift, doctor and verifications for Prometheus, in a\n"
      "format that node_exporter's textfile collector reads (--json is ignored)");
  const auto output = std::make_shared<std::filesystem::path>();
  command
      ->add_option("--output", *output,
                   "Replace this file in one step instead of printing; node_exporter reads\n"
                   "files with the suffix .prom")
      ->type_name("FILE");
  command->callback([&runner, output] {
    runner = [output](Session& session) { return writeMetrics(session, *output); };
  });
}

}  // namespace vfpass::commands
