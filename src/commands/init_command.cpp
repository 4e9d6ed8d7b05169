#include "commands.hpp"
#include "host_topology.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/shell.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/command_reports.hpp"

namespace vfpass::commands {
namespace {

struct InitOptions {
  std::string vm;
  std::size_t gpus = 1;
  std::optional<std::size_t> vfs;
  bool infiniband = false;
};

// Only a note: the mapping can be written before the VM.
void noteMissingDomain(Session& session, const std::string& vm) {
  if (session.options().sysroot != "/") {
    return;
  }
  try {
    session.limitLibvirt(deadlines::libvirtAnswer);
    if (!session.hypervisor().findDomain(vm)) {
      session.note("libvirt has no domain " + printable(vm) + ": define it before the attach");
    }
  } catch (const Error&) {  // libvirt does not respond; check and attach say so
  }
}

ExitCode init(Session& session, const InitOptions& options) {
  const std::size_t vfs = options.vfs.value_or(std::max<std::size_t>(options.gpus, 1));
  report::TopologyReport host = topologyReport(session, true);
  warnOfProblems(session, host.topology);
  report::ProposalReport report;
  report.vm = options.vm;
  report.command = "vfpass init " + shellArgument(options.vm) + " --gpus " +
                   std::to_string(options.gpus) + " --vfs " + std::to_string(vfs) +
                   (options.infiniband ? " --infiniband" : "");
  report.schemaFile = VFPASS_DATA_DIRECTORY "/mapping.schema.json";
  report.proposal =
      topology::propose(host.topology, host.leases, {options.gpus, vfs, options.infiniband});
  report.topology = std::move(host.topology);
  noteMissingDomain(session, options.vm);
  report::writeProposal(session.out(), report, session.style());
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
  command->callback([&runner, options] {
    runner = [options](Session& session) { return init(session, *options); };
  });
}

}  // namespace vfpass::commands
