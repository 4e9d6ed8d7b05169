#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

#include "all_vms.hpp"
#include "commands.hpp"
#include "guest_devices.hpp"
#include "host_facts.hpp"
#include "pf_baseline.hpp"
#include "subject.hpp"
#include "verification.hpp"
#include "vfpass/agent/probe_program.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/base/write_file.hpp"
#include "vfpass/report/check_pages.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/verification_records.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::commands {
namespace {

struct VerifyOptions {
  std::string vm;
  commands::AllOptions all;
  std::vector<std::string> peer;           ///< VM, or URI and VM, of each
  std::vector<std::string> baseline;       ///< PF, and maybe a GPU
  std::vector<std::string> notOfBaseline;  ///< specified words without a meaning for --baseline
  std::string probe;                       ///< empty: the one that belongs to this vfpass
  std::string folder = agent::probeFolder;
  std::string minimumBandwidth;
  std::string inject;
  std::string relaxedOrdering;
  bool noTools = false;
  bool sequential = false;
  bool gpu = false;
  bool junit = false;
  std::string html;  ///< file; empty: none
  bool pending = false;
  std::optional<unsigned> timeoutSeconds;
  unsigned waitSeconds = 0;
  std::optional<std::uint64_t> messageBytes;
  std::uint64_t iterations = 1000;
  bool allPairs = false;
  bool nccl = false;
  unsigned sustainSeconds = 0;  ///< 0: not specified
  bool sizes = false;
  std::optional<std::uint64_t> sizeIterations;
};

// CLI11 shortens a text that is not a size, which the error message would then quote.
std::string sizeValue(std::string& text) {
  std::string size = text;
  std::string fault = CLI::AsSizeValue(false)(size);
  if (fault.empty()) {
    text = size;
  }
  return fault;
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

// `verify --peer VM2 VM`: the option takes several words, and only a URI is followed by a VM.
void giveBackVm(VerifyOptions& options) {
  const std::size_t words = options.peer.size();
  if (options.vm.empty() && words >= 2 &&
      options.peer[words - 2].find("://") == std::string::npos) {
    options.vm = options.peer.back();
    options.peer.pop_back();
  }
}

// The probe's time has to contain the sustained transfers, and as much again for all the rest.
void requireAllPairs(const VerifyOptions& options) {
  if (options.allPairs && options.peer.empty()) {
    throw Error("--all-pairs: no other VM to pair with", "specify one with --peer",
                ExitCode::badInput);
  }
  if (options.sustainSeconds != 0 && !options.allPairs) {
    throw Error("--sustain: only possible with --all-pairs", "add --all-pairs, or omit --sustain",
                ExitCode::badInput);
  }
  const std::chrono::seconds timeout(
      options.timeoutSeconds.value_or(static_cast<unsigned>(deadlines::verify.count())));
  const auto probe = deadlines::probeWithin(timeout);
  if (std::chrono::seconds(options.sustainSeconds) * 2 > probe) {
    throw Error("--sustain " + std::to_string(options.sustainSeconds) +
                    ": too long for a --timeout of " + std::to_string(timeout.count()) + " seconds",
                "set --timeout to at least five times as many seconds", ExitCode::badInput);
  }
}

commands::VerifyRequest requestOf(const VerifyOptions& options) {
  commands::VerifyRequest request;
  if (!options.peer.empty()) {
    auto peers = remote::parsePeers(options.peer);
    if (peers.size() > 1 && !options.nccl) {
      throw Error("--peer: several VMs are only possible with --nccl", "name one VM, or add --nccl",
                  ExitCode::badInput);
    }
    request.peer = peers.front();
    request.furtherPeers.assign(peers.begin() + 1, peers.end());
  }
  request.probe = options.probe.empty() ? programFile("vfpass-probe").string() : options.probe;
  request.folder = options.folder;
  request.minimumShare = shareOf(options.minimumBandwidth);
  request.gpu = options.gpu;
  request.relaxedOrdering = orderingOf(options.relaxedOrdering);
  request.tools = !options.noTools;
  request.concurrent = !options.sequential;
  request.inject = options.inject;
  if (options.timeoutSeconds) {
    request.timeout = std::chrono::seconds(*options.timeoutSeconds);
  }
  request.wait = std::chrono::seconds(options.waitSeconds);
  request.messageBytes = options.messageBytes.value_or(request.messageBytes);
  request.ncclBytes = options.messageBytes;
  request.iterations = options.iterations;
  request.allPairs = options.allPairs;
  if (options.sustainSeconds != 0) {
    request.sustain = std::chrono::seconds(options.sustainSeconds);
  }
  request.sizes = options.sizes;
  request.sizeIterations = options.sizeIterations;
  request.nccl = options.nccl;
  return request;
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

// Without the guest if its devices cannot be found.
std::string pictureOf(Session& session, const VerifyReport& report,
                      const report::TopologyReport& host) {
  std::ostringstream svg;
  try {
    const auto machine = guestMachineOf(session, toString(report.domain), host.leases);
    report::writeTopologySvg(svg, host, {topology::guestTopology(machine, host.topology), {}},
                             "in guest " + report.domainName);
  } catch (const Error& error) {
    session.verbose(error.what());
    report::writeTopologySvg(svg, host);
  }
  return svg.str();
}

void writeHtml(Session& session, const VerifyReport& report, const std::string& file) {
  std::vector<report::PastVerification> history;
  for (const auto& kept : state::keptReports(session.options().stateDirectory, report.domain)) {
    auto past = report::readPastVerification(kept.text);
    past.problem = kept.problem.empty() ? past.problem : kept.problem;
    if (past.time != report.time) {
      history.push_back(past);
    }
  }
  const auto host = topologyReport(session, true);
  std::ostringstream page;
  report::writeVerifyHtml(page, report, pictureOf(session, report, host), history,
                          originOf(session, host.topology));
  writeOutputFile(file, page.str());
}

ExitCode verifyPending(Session& session, const VerifyOptions& options,
                       const commands::VerifyRequest& request) {
  if (!options.peer.empty()) {
    throw Error("--pending: not possible with --peer", "omit --peer", ExitCode::badInput);
  }
  if (options.nccl) {
    throw Error("--pending: not possible with --nccl", "omit --nccl", ExitCode::badInput);
  }
  const StopSignals stop;
  if (options.vm.empty()) {
    verifyStarted(session, request);
  } else {
    verifyStartedVm(session, options.vm, request);
  }
  return ExitCode::done;
}

// Not with a VM: a baseline is that of the host itself.
ExitCode measureBaselineOf(Session& session, const VerifyOptions& options) {
  if (!options.notOfBaseline.empty()) {
    throw Error("--baseline: not possible with " + join(options.notOfBaseline, ", "),
                "measure the host itself without: `vfpass verify --baseline PF [GPU]`",
                ExitCode::badInput);
  }
  commands::BaselineRequest request{options.baseline, requestOf(options).probe,
                                    options.messageBytes.value_or(VerifyRequest{}.messageBytes),
                                    options.iterations};
  if (options.timeoutSeconds) {
    request.timeout = std::chrono::seconds(*options.timeoutSeconds);
  }
  return measurePf(session, request);
}

ExitCode verifyRunning(Session& session, const VerifyOptions& options, const std::string& vm,
                       const commands::VerifyRequest& request) {
  session.operations().begin(events::Operation::verify, vm);
  throwIfFaulty(session, vm, vm);
  const DomainDescription domain = runningGuest(session, vm, "verify");
  const StopSignals stop;  // gives time to stop the probe in the guest
  const VerifyReport report = verifyVm(session, domain, request);
  if (!options.html.empty()) {
    writeHtml(session, report, options.html);
  }
  if (options.junit) {
    report::writeVerifyJunit(session.out(), report);
  } else {
    report::writeVerify(session.out(), report, session.style());
    if (!session.style().json) {
      report::writeExplainHint(session.out(), report);
    }
  }
  return exitCodeOf(report);
}

commands::VmList runningVms(Session& session) {
  commands::VmList running;
  running.none = "no running VM has leases";
  const commands::VmList leased = commands::leasedVms(session.readLeases());
  for (const auto& vm : leased.vms) {
    const auto domain = session.hypervisor().findDomain(toString(*vm.uuid));
    if (domain && domain->active) {
      running.vms.push_back({domain->name, vm.uuid});
    } else {
      session.note("VM " + printable(vm.name) + " is not running, and is not verified");
    }
  }
  return running;
}

ExitCode verifyAll(Session& session, const VerifyOptions& options,
                   const commands::VerifyRequest& request) {
  commands::AllRun run{"verify", options.all.stopOnFailure, false, runningVms, {}};
  run.run = [&](Session& part, const std::string& vm) {
    return verifyRunning(part, options, vm, request);
  };
  return runForAll(session, run);
}

ExitCode verify(Session& session, VerifyOptions options) {
  if (!options.baseline.empty()) {
    return measureBaselineOf(session, options);
  }
  giveBackVm(options);
  if (!options.pending || options.all.all) {
    commands::requireVmOrAll("verify", options.vm, options.all);
  }
  requireAllPairs(options);
  const commands::VerifyRequest request = requestOf(options);
  session.requireChangesPossible("verify");
  if (!options.probe.empty()) {
    agent::readProbeFile(request.probe);  // its fault is named before libvirt's
  }
  if (options.pending) {
    return verifyPending(session, options, request);
  }
  return options.all.all ? verifyAll(session, options, request)
                         : verifyRunning(session, options, options.vm, request);
}

// More VMs than ranks of NCCL are possible.
constexpr int mostPeerWords = 180;

void addPeerOptions(CLI::App& command, VerifyOptions& options) {
  command
      .add_option("--peer", options.peer,
                  "Transfer data between this VM and another one: VM2 of this host, host2:VM2, or\n"
                  "qemu+ssh://host2/system VM2")
      ->expected(1, mostPeerWords)
      ->type_name("[HOST:]VM");
  command.add_flag("--all-pairs", options.allPairs,
                   "With --peer: also run all pairs of VFs at the same time");
}

void addNcclOption(CLI::App& command, VerifyOptions& options) {
  command.add_flag(
      "--nccl", options.nccl,
      "Also run NCCL's all-reduce and all-gather over the leased GPUs of the VM, and of\n"
      "the others with --peer, which can then be repeated");
}

void addReportOptions(CLI::App& command, VerifyOptions& options) {
  command.add_flag("--junit", options.junit, "Print the report as JUnit XML");
  command.add_option("--html", options.html, "Also write the report as one HTML page")
      ->type_name("FILE");
}

void addMeasurementOptions(CLI::App& command, VerifyOptions& options) {
  command.add_flag("--gpu", options.gpu,
                   "Verify GPU memory (the default if the VM has a leased GPU), even if the\n"
                   "mapping excludes it");
  command
      .add_option("--minimum-bandwidth", options.minimumBandwidth,
                  "Minimum share of the lowest limit (port without headers, PCI Express), such\n"
                  "as 90%")
      ->type_name("PERCENT");
}

void addBaselineOption(CLI::App& command, VerifyOptions& options) {
  command
      .add_option("--baseline", options.baseline,
                  "Measure a PF of this host itself, and GPU memory if the host uses that GPU,\n"
                  "before attach: later verifications compare the VF with it")
      ->expected(1, 2)
      ->type_name("PF [GPU]");
}

// All but those that measurePf() takes: a new option has no meaning for it until it is listed here.
std::vector<std::string> notOfBaseline(const CLI::App& command) {
  constexpr std::array<std::string_view, 5> possible{"baseline", "bytes", "iterations", "probe",
                                                     "timeout"};
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) {
      continue;
    }
    const auto& longNames = option->get_lnames();  // get_name() has none of hidden options
    if (longNames.empty()) {
      names.emplace_back("a VM");
    } else if (std::ranges::find(possible, longNames.front()) == possible.end()) {
      names.push_back("--" + longNames.front());
    }
  }
  return names;
}

void addRunOptions(CLI::App& command, VerifyOptions& options) {
  command
      .add_option("--timeout", options.timeoutSeconds,
                  "Time limit for the whole command (default: 600, and more for several VFs)")
      ->type_name("SECONDS")
      ->check(CLI::Range(10, 86400));
  command.add_option("--wait", options.waitSeconds, "Time to wait for the guest agent")
      ->type_name("SECONDS");
  command.add_flag("--pending", options.pending,
                   "Verify the VMs that have started and have `verify: {on-start: report}`;\n"
                   "run by systemd");
}

/// Only `--help-all` lists them: who verifies a VM needs none.
void addDeveloperOptions(CLI::App& command, VerifyOptions& options) {
  command.add_flag_callback(
      "--help-all",
      [&command] {
        for (CLI::Option* option : command.get_options()) {
          option->group(option->get_group().empty() ? "Developer options" : option->get_group());
        }
        throw CLI::CallForHelp();
      },
      "Also list the options for developers and measurements");
  command.option_defaults()->group("");
  command.add_option("--sustain", options.sustainSeconds, "Duration of --all-pairs (default: 10)")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 600));
  command
      .add_option("--bytes", options.messageBytes,
                  "Message size, such as 64K; also the only size of --nccl")
      ->transform(CLI::Validator(sizeValue, "SIZE"));
  command
      .add_option_function<std::uint64_t>(
          "--iterations",
          [&options](std::uint64_t count) {
            options.iterations = count;
            options.sizeIterations = count;
          },
          "Minimum number of messages per run (bandwidth runs last at least 0.5 s)")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 1000000));
  command.add_flag("--sizes", options.sizes,
                   "Also measure every message size from 2 bytes to 16 MiB");
  command.add_option("--probe", options.probe, "Probe program on this host")->type_name("FILE");
  command.add_option("--guest-folder", options.folder, "Directory for the probe in the guest")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  command
      .add_option("--relaxed-ordering", options.relaxedOrdering,
                  "Relaxed ordering of PCI Express writes (default: both, except for SoftRoCE)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"off", "on", "both"}));
  command.add_flag("--no-tools", options.noTools,
                   "Do not run perftest and nccl-tests even if the guest has them");
  command.add_flag("--sequential", options.sequential,
                   "Verify one VF after another, so that no other VF affects a figure (default:\n"
                   "VFs of different PFs at the same time)");
  command
      .add_option("--inject", options.inject,
                  "Make the probe inject a fault, which verify must detect")
      ->type_name("FAULT");
}

}  // namespace

void addVerify(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "verify",
      "Verify in the guest that RDMA works, and compare the result with the host's counters");
  const auto options = std::make_shared<VerifyOptions>();
  command->add_option("vm", options->vm, "Domain name or UUID")->type_name("VM");
  addAll(*command, options->all, "Verify all running VMs that have leases, one after another");
  addPeerOptions(*command, *options);
  addNcclOption(*command, *options);
  addReportOptions(*command, *options);
  addMeasurementOptions(*command, *options);
  addBaselineOption(*command, *options);
  addRunOptions(*command, *options);
  addDeveloperOptions(*command, *options);
  command->callback([&runner, options, command] {
    options->notOfBaseline = notOfBaseline(*command);
    options->all.unsuitable = commands::specifiedAmong(
        *command, {"--all-pairs", "--html", "--junit", "--peer", "--pending"});
    runner = [options](Session& session) { return verify(session, *options); };
  });
}

}  // namespace vfpass::commands
