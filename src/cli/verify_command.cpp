#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iomanip>
#include <map>
#include <ostream>
#include <sstream>
#include <thread>

#include "commands.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/session/host_observer.hpp"
#include "vfpass/session/running_guest.hpp"
#include "vfpass/session/stop_signals.hpp"
#include "vfpass/state/report_history.hpp"
#include "vfpass/state/started_marks.hpp"
#include "vfpass/verify/verify_pair.hpp"

namespace vfpass::cli {
namespace {

// The probe that belongs to this vfpass: below the same prefix, wherever that is, or in the same
// build directory; otherwise at the path that the build was configured with.
std::string probeOfThisBuild() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  for (const char* place : {"libexec/vfpass/vfpass-probe", "libexec/vfpass-probe"}) {
    if (fs::exists(prefix / place, ignored)) {
      return prefix / place;
    }
  }
  return VFPASS_PROBE;
}

struct VerifyOptions {
  std::string vm;
  std::string peer;
  std::string probe = probeOfThisBuild();
  std::string folder = agent::probeFolder;
  std::string minimumBandwidth;
  std::string inject;
  std::string relaxedOrdering;
  bool noTools = false;
  bool gpu = false;
  bool junit = false;
  bool pending = false;
  unsigned timeoutSeconds = deadlines::verify.count();
  unsigned waitSeconds = 0;
  std::uint64_t messageBytes = std::uint64_t{64} << 10U;
  std::uint64_t iterations = 1000;
};

std::string timeNow() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::ostringstream text;
  text << std::put_time(&parts, "%Y-%m-%dT%H:%M:%SZ");
  return text.str();
}

// The agent of a guest starts some time after boot.
void waitForAgent(Session& session, const DomainDescription& domain, unsigned waitSeconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(waitSeconds);
  while (std::chrono::steady_clock::now() < end) {
    session::StopSignals::throwIfAsked();
    try {
      session.hypervisor().askAgent(domain.uuid, R"({"execute": "guest-ping"})",
                                    deadlines::agentPing);
      return;
    } catch (const Error& error) {
      session.verbose(error.what());
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

// Null if the VM has none.
const Mapping* mappingOf(Session& session, const DomainDescription& domain) {
  return config::findMapping(session.configuration(), domain.name, toString(domain.uuid));
}

// The mapping's `verify:` block; defaults without a mapping.
VerifyPolicy policyFor(Session& session, const DomainDescription& domain) {
  const Mapping* mapping = mappingOf(session, domain);
  return mapping == nullptr ? VerifyPolicy{} : mapping->verify;
}

std::optional<NvlinkMode> nvlinkOf(Session& session, const DomainDescription& domain) {
  const Mapping* mapping = mappingOf(session, domain);
  return mapping == nullptr ? std::nullopt : mapping->nvlink;
}

std::map<std::string, unsigned> wantedMtus(Session& session, const DomainDescription& domain) {
  std::map<std::string, unsigned> wanted;
  if (const Mapping* mapping = mappingOf(session, domain); mapping != nullptr) {
    for (const auto& vf : mapping->vfs) {
      if (vf.guest.mtu) {
        wanted[vf.name] = *vf.guest.mtu;
      }
    }
  }
  return wanted;
}

std::optional<double> shareOf(const std::string& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  std::istringstream stream(text);
  double percent = 0;
  std::string sign;
  if (!(stream >> percent >> sign) || sign != "%" || percent < 0 || percent > 100) {
    throw Error("--minimum-bandwidth: invalid percentage " + printable(text),
                "specify a percentage from 0% to 100%, such as 90%", ExitCode::badInput);
  }
  return percent / 100;
}

verify::RelaxedOrdering orderingOf(const std::string& word) {
  using verify::RelaxedOrdering;
  return word == "off"    ? RelaxedOrdering::off
         : word == "on"   ? RelaxedOrdering::on
         : word == "both" ? RelaxedOrdering::both
                          : RelaxedOrdering::automatic;
}

verify::VerifyPlan planFor(Session& session, const DomainDescription& domain,
                           const VerifyOptions& options) {
  const VerifyPolicy policy = policyFor(session, domain);
  verify::VerifyPlan plan;
  plan.leases = runningVfs(session, domain);
  plan.gpuWanted = options.gpu || policy.gpu;
  plan.nvlink = nvlinkOf(session, domain);
  const auto share = shareOf(options.minimumBandwidth);
  plan.minimumShare = share ? share : policy.minimumShare;
  plan.messageBytes = options.messageBytes;
  plan.iterations = options.iterations;
  plan.folder = options.folder;
  plan.probeTimeout = deadlines::probeWithin(std::chrono::seconds(options.timeoutSeconds));
  plan.relaxedOrdering = orderingOf(options.relaxedOrdering);
  plan.tools = !options.noTools;
  if (!options.inject.empty()) {
    plan.probeArguments = {"--inject", options.inject};
  }
  return plan;
}

// Missing counters and errors are treated alike: the host has no measurement.
std::optional<VfTraffic> trafficOf(Session& session, const Lease& lease) {
  try {
    return session.kernel().vfTraffic(lease.pf, lease.vfIndex);
  } catch (const Error& error) {
    session.warn(error.what());
    return std::nullopt;
  }
}

ExitCode exitCodeOf(const VerifyReport& report) {
  switch (verdict(report)) {
    case Outcome::passed:
      return ExitCode::done;
    case Outcome::failed:
      return ExitCode::unproven;
    default:
      return ExitCode::unverified;
  }
}

void keepReport(Session& session, const VerifyReport& report) {
  std::ostringstream text;
  report::writeVerify(text, report, {.json = true});
  state::keepReport(session.options().stateDirectory, report.domain, report.time, text.str());
}

verify::VerifyWatch watchOf(Session& session) {
  return {[&session](const Lease& lease) { return trafficOf(session, lease); },
          [&session](std::size_t done, std::size_t all) {
            session.verbose("copying the probe: " + std::to_string(done * 100 / all) + " %");
          }};
}

// The report belongs to the first VM; the peer is only its counterpart.
VerifyReport verifyWithPeer(Session& session, const DomainDescription& domain,
                            const VerifyOptions& options) {
  const DomainDescription peer = runningGuest(session, options.peer, "verify");
  if (peer.uuid == domain.uuid) {
    throw Error("--peer: same VM as the verified one", "specify another VM, or omit --peer",
                ExitCode::badInput);
  }
  const auto plan = planFor(session, domain, options);
  const auto probe = agent::readProbeFile(options.probe);
  waitForAgent(session, domain, options.waitSeconds);
  waitForAgent(session, peer, options.waitSeconds);
  const std::chrono::seconds timeout(options.timeoutSeconds);
  agent::Agent near(session.hypervisor(), domain.uuid, domain.name, timeout,
                    session::StopSignals::throwIfAsked);
  agent::Agent far(session.hypervisor(), peer.uuid, peer.name, timeout,
                   session::StopSignals::throwIfAsked);
  const session::HostObserver nearHost(session, domain, wantedMtus(session, domain));
  const session::HostObserver farHost(session, peer, wantedMtus(session, peer));
  VerifyReport report =
      verifyPair({near, domain.name, plan.leases,
                  [&](const Lease& lease) { return nearHost.of(lease); }, plan.nvlink},
                 {far, peer.name, runningVfs(session, peer),
                  [&](const Lease& lease) { return farHost.of(lease); }, nvlinkOf(session, peer)},
                 probe, plan, watchOf(session));
  report.peerName = peer.name;
  return report;
}

VerifyReport verifyAlone(Session& session, const DomainDescription& domain,
                         const VerifyOptions& options) {
  const auto plan = planFor(session, domain, options);
  const auto probe = agent::readProbeFile(options.probe);
  waitForAgent(session, domain, options.waitSeconds);
  agent::Agent agent(session.hypervisor(), domain.uuid, domain.name,
                     std::chrono::seconds(options.timeoutSeconds),
                     session::StopSignals::throwIfAsked);
  const session::HostObserver host(session, domain, wantedMtus(session, domain));
  verify::VerifyWatch watch = watchOf(session);
  watch.host = [&](const Lease& lease) { return host.of(lease); };
  return verifyGuest(agent, probe, plan, watch);
}

VerifyReport verifyDomain(Session& session, const DomainDescription& domain,
                          const VerifyOptions& options) {
  session.requireLocalLibvirt("verify");
  VerifyReport report = options.peer.empty() ? verifyAlone(session, domain, options)
                                             : verifyWithPeer(session, domain, options);
  report.domain = domain.uuid;
  report.domainName = domain.name;
  report.time = timeNow();
  keepReport(session, report);
  return report;
}

// Run by systemd after starts, for VMs whose mapping has `on-start: report`. A VM that cannot be
// verified gives a warning and does not stop the others; the exit status is not used.
ExitCode verifyStarted(Session& session, const VerifyOptions& options) {
  for (const auto& uuid : state::takeStarted(session.options().runDirectory)) {
    try {
      const DomainDescription domain = runningGuest(session, toString(uuid), "verify");
      if (policyFor(session, domain).onStart) {
        const auto report = verifyDomain(session, domain, options);
        session.note("VM " + printable(domain.name) + ": " +
                     std::string(toString(verdict(report))));
      }
    } catch (const Error& error) {
      session.warn(error.what());
    }
  }
  return ExitCode::done;
}

ExitCode verify(Session& session, const VerifyOptions& options) {
  session.requireChangesPossible("verify");
  const session::StopSignals stop;  // gives time to stop the probe in the guest
  if (options.pending && !options.peer.empty()) {
    throw Error("--pending: not possible with --peer", "omit --peer", ExitCode::badInput);
  }
  if (options.pending) {
    return verifyStarted(session, options);
  }
  if (options.vm.empty()) {
    throw Error("no VM specified", "run `vfpass verify VM`", ExitCode::badInput);
  }
  const VerifyReport report =
      verifyDomain(session, runningGuest(session, options.vm, "verify"), options);
  if (options.junit) {
    report::writeVerifyJunit(session.out(), report);
  } else {
    report::writeVerify(session.out(), report, session.style());
  }
  return exitCodeOf(report);
}

}  // namespace

void addVerify(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "verify",
      "Verify in the guest that RDMA works, and compare the result with the host's counters");
  const auto options = std::make_shared<VerifyOptions>();
  command->add_option("vm", options->vm, "Domain name or UUID");
  command
      ->add_option("--peer", options->peer,
                   "Transfer data between this VM and another VM of this host")
      ->type_name("VM");
  command->add_flag("--junit", options->junit, "Print the report as JUnit XML");
  command->add_flag("--gpu", options->gpu,
                    "Verify GPU memory as well (or `verify: {paths: [gpu]}`)");
  command
      ->add_option("--minimum-bandwidth", options->minimumBandwidth,
                   "Minimum share of the lowest limit (port without headers, PCI Express), such\n"
                   "as 90%")
      ->type_name("PERCENT");
  command->add_option("--bytes", options->messageBytes, "Message size, such as 64K")
      ->transform(CLI::AsSizeValue(false));
  command->add_option("--iterations", options->iterations, "Messages per run")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--timeout", options->timeoutSeconds, "Time limit for the whole command")
      ->type_name("SECONDS")
      ->check(CLI::Range(10, 86400))
      ->capture_default_str();
  command->add_option("--wait", options->waitSeconds, "Time to wait for the guest agent")
      ->type_name("SECONDS");
  command->add_flag("--pending", options->pending,
                    "Verify the VMs that have started and have `verify: {on-start: report}`; run "
                    "by systemd");
  command->add_option("--probe", options->probe, "Probe program on this host")->type_name("FILE");
  command->add_option("--guest-folder", options->folder, "Directory for the probe in the guest")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  command
      ->add_option("--relaxed-ordering", options->relaxedOrdering,
                   "Relaxed ordering of PCI Express writes (default: both, except for SoftRoCE)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"off", "on", "both"}));
  command->add_flag("--no-tools", options->noTools,
                    "Do not run perftest and nccl-tests even if the guest has them");
  command
      ->add_option("--inject", options->inject,
                   "Make the probe inject a fault, which verify must detect")
      ->type_name("FAULT");
  command->callback([&runner, options] {
    runner = [options](Session& session) { return verify(session, *options); };
  });
}

}  // namespace vfpass::cli
