#include <sstream>
#include <vector>

#include "commands.hpp"
#include "host_facts.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/config/configuration.hpp"
#include "vfpass/error.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

// Empty for the directory that commands read without it.
std::string configOption(const Session& session) {
  const auto& directory = session.options().configDirectory;
  return directory == GlobalOptions{}.configDirectory
             ? ""
             : " --config-dir " + shellArgument(directory.string());
}

}  // namespace

void requireTargetOfThisHost(const Session& session, const std::string& command) {
  if (session.options().sysroot != "/" &&
      session.options().configDirectory == GlobalOptions{}.configDirectory) {
    throw Error(command + " --write: not possible on a captured tree (--sysroot)",
                "omit --sysroot, or specify another directory with --config-dir",
                ExitCode::badInput);
  }
}

void reportCreatedMapping(Session& session, const std::string& file, const std::string& vm) {
  const std::string arguments = shellArgument(vm) + configOption(session);
  report::writeCreatedFile(session.out(), file,
                           {{"vfpass check " + arguments, "compare it with this host"},
                            {"vfpass plan " + arguments, "show what attach would change"},
                            {"vfpass attach " + arguments, "attach the devices"}});
}

void reportCreatedHostPolicy(Session& session, const std::string& file) {
  const std::string option = configOption(session);
  report::writeCreatedFile(session.out(), file,
                           {{"vfpass host show" + option, "compare it with this host"},
                            {"vfpass host apply" + option, "apply it"}});
}

namespace {

struct InitOptions {
  std::string vm;
  std::size_t gpus = 1;
  std::optional<std::size_t> vfs;
  bool infiniband = false;
  bool write = false;
};

// A missing domain is only a note: the mapping can be written before the VM.
std::optional<DomainDescription> findDomain(Session& session, const std::string& vm) {
  if (session.options().sysroot != "/") {
    return std::nullopt;
  }
  try {
    session.limitLibvirt(deadlines::libvirtAnswer);
    auto domain = session.hypervisor().findDomain(vm);
    if (!domain) {
      session.note("libvirt has no domain " + printable(vm) + ": define it before the attach");
    }
    return domain;
  } catch (const Error&) {  // libvirt does not respond; check and attach say so
    return std::nullopt;
  }
}

std::string writeMapping(Session& session, const report::ProposalReport& report,
                         const std::optional<DomainDescription>& domain) {
  std::ostringstream text;
  report::writeProposalYaml(text, report);
  return config::writeNewMapping(session.options().configDirectory,
                                 {report.vm, domain ? domain->name : report.vm,
                                  domain ? toString(domain->uuid) : "", text.str()})
      .string();
}

std::vector<PciAddress> unfitDevices(Session& session) {
  std::vector<PciAddress> unfit;
  for (const QuarantinedDevice& device : session.quarantined()) {
    session.note(toString(device.device) +
                 " is not proposed: it is in quarantine; `vfpass quarantine list` says why");
    unfit.push_back(device.device);
    for (const PciAddress& place : device.elsewhere) {
      session.note(toString(place) + " is not proposed: it is in quarantine, then at " +
                   toString(device.device) + "; `vfpass quarantine list` says why");
      unfit.push_back(place);
    }
  }
  return unfit;
}

// GPUs that no partition holds can only be used without NVLink: attach refuses them otherwise.
void disableWithoutPartition(Session& session, report::ProposalReport& report) {
  using Fit = topology::PartitionJudgement::Outcome;
  const auto& judgement = *report.partition;
  const bool none = judgement.outcome == Fit::none;
  if (none) {
    report.proposal.nvlink = NvlinkMode::disabled;
  }
  if (judgement.outcome != Fit::fits) {
    session.note("NVLink: " + judgement.summary +
                 (none ? ", so that the mapping has `nvlink: disabled`; " : "; ") +
                 judgement.remedy);
  }
}

// Of a board with NVSwitches, GPUs that the fabric manager can connect.
void addPartition(Session& session, const report::TopologyReport& host,
                  const topology::Wanted& wanted, report::ProposalReport& report) {
  if (report.proposal.nvlink != NvlinkMode::partition) {
    return;
  }
  const auto answer = askForPartitions(session.root());
  if (!answer.problem.empty()) {
    session.note(answer.problem);
  }
  if (answer.partitions) {
    report.proposal = topology::proposePartition(host.topology, host.leases, wanted,
                                                 *answer.partitions, report.proposal);
    report.partition = topology::judgePartition(
        *answer.partitions, topology::partitionedGpus(host.topology, report.proposal));
    disableWithoutPartition(session, report);
  }
}

ExitCode init(Session& session, const InitOptions& options) {
  if (options.write) {
    requireTargetOfThisHost(session, "init");
  }
  const std::size_t vfs = options.vfs.value_or(std::max<std::size_t>(options.gpus, 1));
  if (options.gpus + vfs == 0) {
    throw Error("`vfpass init`: --gpus 0 and --vfs 0 leave nothing to propose",
                "request a GPU or a VF, such as with `--gpus 0 --vfs 1`", ExitCode::badInput);
  }
  const auto unfit = unfitDevices(session);
  report::TopologyReport host = topologyReport(session, true);
  warnOfProblems(session, host.topology);
  report::ProposalReport report;
  report.vm = options.vm;
  report.command = "vfpass init " + shellArgument(options.vm) + " --gpus " +
                   std::to_string(options.gpus) + " --vfs " + std::to_string(vfs) +
                   (options.infiniband ? " --infiniband" : "");
  report.schemaFile = VFPASS_DATA_DIRECTORY "/mapping.schema.json";
  const topology::Wanted wanted{options.gpus, vfs, options.infiniband, unfit};
  report.proposal = topology::propose(host.topology, host.leases, wanted);
  addPartition(session, host, wanted, report);
  report.topology = std::move(host.topology);
  const auto domain = findDomain(session, options.vm);
  if (!options.write) {
    report::writeProposal(session.out(), report, session.style());
    return ExitCode::done;
  }
  report.file = writeMapping(session, report, domain);
  if (session.style().json) {
    report::writeProposal(session.out(), report, session.style());
  } else {
    reportCreatedMapping(session, report.file, options.vm);
  }
  return ExitCode::done;
}

}  // namespace

void addInit(CLI::App& app, Runner& runner) {
  constexpr unsigned mostDevices = 256;
  auto* command = app.add_subcommand(
      "init", "Propose a mapping: the nearest pairs of free GPUs and PFs, with reasons");
  const auto options = std::make_shared<InitOptions>();
  command->add_option("vm", options->vm, "Domain name or UUID")->type_name("VM")->required();
  command->add_option("--gpus", options->gpus, "Number of GPUs")
      ->type_name("NUMBER")
      ->check(CLI::Range(0U, mostDevices))
      ->capture_default_str();
  command->add_option("--vfs", options->vfs, "Number of VFs (default: one for each GPU)")
      ->type_name("NUMBER")
      ->check(CLI::Range(0U, mostDevices));
  command->add_flag("--infiniband", options->infiniband, "Only VFs of InfiniBand PFs");
  command->add_flag(
      "--write", options->write,
      "Create the file vms/VM.yaml in the configuration directory, unless the VM has\n"
      "a mapping already");
  command->callback([&runner, options] {
    runner = [options](Session& session) { return init(session, *options); };
  });
}

}  // namespace vfpass::commands
