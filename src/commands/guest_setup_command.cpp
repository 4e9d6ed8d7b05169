#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <sstream>

#include "command_session.hpp"
#include "commands.hpp"
#include "guest_devices.hpp"
#include "host_facts.hpp"
#include "subject.hpp"
#include "verification_steps.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/scope_guard.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/report/command_reports.hpp"
#include "vfpass/setup/setup_apply.hpp"
#include "vfpass/setup/setup_plan.hpp"
#include "vfpass/setup/setup_view.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::commands {
namespace {

constexpr std::string_view noGpu = "no topology file for NCCL: the VM has no GPU (`gpus:`)";

const Lease* findLease(const std::vector<Lease>& leases, const std::string& name) {
  const auto found = std::ranges::find(leases, name, &Lease::entry);
  return found == leases.end() ? nullptr : &*found;
}

// Firmware numbers the buses behind bridges in its own order, and a hot-plugged bridge gets one of
// the remaining numbers, so the address is read from the guest: the function at the end of the
// path.
std::optional<PciAddress> placeInGuest(const GuestMachine& machine, const Lease& lease,
                                       const setup::SetupView& view) {
  return functionAt(view, guestPathOf(machine, lease.entry));
}

bool holdsGpu(const std::vector<Lease>& leases, const Topology& topology) {
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    const Device* function = findFunction(topology, lease.device);
    return function != nullptr && function->role == FunctionRole::gpu;
  });
}

// Empty, with a note, if no topology file is possible.
std::string ncclTopology(Session& session, const GuestMachine& machine,
                         const std::vector<Lease>& leases, const setup::SetupView& view,
                         std::vector<std::string>& notes) {
  if (std::ranges::all_of(leases, isVf)) {
    notes.emplace_back(noGpu);
    return "";
  }
  report::TopologyReport host = topologyReport(session, false);
  host.leases = leases;
  if (!holdsGpu(leases, host.topology)) {
    notes.emplace_back("no topology file for NCCL: none of the VM's PCI functions is a GPU");
    return "";
  }
  try {
    const std::string domain = toString(leases.front().domain);
    const auto leased = guestDevicesOf(domain, host);
    auto devices = placedIn(machine, leased, topology::guestTopology(machine, host.topology));
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto address = placeInGuest(machine, leased[i].lease, view);
      if (!address) {
        throw Error("the guest has no device at the address of " + leased[i].lease.entry);
      }
      devices[i].address = *address;
    }
    std::ostringstream text;
    report::writeGuestNcclTopology(text, host.topology, devices);
    return text.str();
  } catch (const Error& error) {
    notes.push_back(std::string("no topology file for NCCL: ") + error.what());
    return "";
  }
}

// The setup that the mapping describes for the VFs of the running guest.
setup::DesiredSetup desiredSetup(const Mapping& mapping, const DomainDescription& domain,
                                 const std::vector<Lease>& leases) {
  setup::DesiredSetup setup;
  setup.domain = domain.uuid;
  setup.nccl = mapping.nccl;
  setup.peerMemory = true;
  setup.nvlinkDisabled = mapping.nvlink == NvlinkMode::disabled;
  for (const MappedVf& vf : mapping.vfs) {
    const Lease* lease = findLease(leases, vf.name);
    if (lease == nullptr) {
      setup.notes.push_back(
          vf.name +
          ": the running guest does not have this device; run `vfpass attach` and "
          "restart the VM");
      continue;
    }
    const std::string address = guestIdentityOf(*lease);
    if (address.empty()) {
      setup.notes.push_back(vf.name + ": its lease records no MAC or GUID");
      continue;
    }
    setup.ports.push_back({vf.name, vfOf(*lease).infiniband, address, "",
                           vfOf(*lease).teamingWith.has_value(), vf.guest});
  }
  return setup;
}

// Adds the parts that depend on the guest's state: the PCI address of each port, and the topology
// file for NCCL, which needs GPUs and contains the guest's own addresses.
void completeSetup(Session& session, const std::vector<Lease>& leases, const setup::SetupView& view,
                   setup::DesiredSetup& setup) {
  if (leases.empty()) {
    setup.notes.emplace_back(noGpu);
    return;
  }
  const GuestMachine machine = guestMachineOf(session, toString(leases.front().domain), leases);
  for (setup::WantedPort& port : setup.ports) {
    const Lease* lease = findLease(leases, port.entry);
    const auto place = lease == nullptr ? std::nullopt : placeInGuest(machine, *lease, view);
    port.function = place ? toString(*place) : "";
  }
  setup.ncclTopology = ncclTopology(session, machine, leases, view, setup.notes);
}

struct GuestSetupOptions {
  std::string vm;
  bool yes = false;
  bool dryRun = false;
  bool undo = false;
  unsigned timeoutSeconds = deadlines::guestSetup.count();
};

setup::SetupPlan planFor(Session& session, const DomainDescription& domain,
                         const GuestSetupOptions& options, const setup::SetupTools& tools) {
  if (options.undo) {
    const setup::ObservedGuest observed = observeGuest(tools, {});
    return setup::planUndo(observed.view, observed.record);
  }
  const commands::Subject subject = findSubject(session, toString(domain.uuid));
  const auto leases = runningLeases(session, domain);
  setup::DesiredSetup setup = commands::desiredSetup(subject.mapping, domain, leases);
  const setup::ObservedGuest observed = observeGuest(tools, setup);
  completeSetup(session, leases, observed.view, setup);
  return setup::planSetup(setup, observed.view, observed.record);
}

// Only asks on a terminal; scripts pass --yes.
bool isConfirmed(Session& session, const GuestSetupOptions& options) {
  if (options.dryRun || options.yes || session.style().json) {
    return options.yes && !options.dryRun;
  }
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
    return false;
  }
  session.out() << "\napply these changes in the guest? [y/N] " << std::flush;
  constexpr std::size_t longestAnswer = 256;
  try {
    const auto answer = BoundedLines(STDIN_FILENO, longestAnswer).next();
    return answer == "y" || answer == "Y" || answer == "yes";
  } catch (const ReadRefused&) {
    return false;
  }
}

void write(Session& session, const GuestSetupReport& report) {
  session.progress().clear();
  report::writeGuestSetup(session.out(), report, session.style());
  session.out() << std::flush;
}

ExitCode setUp(Session& session, const GuestSetupOptions& options) {
  session.requireChangesPossible("guest-setup");
  if (!options.undo) {
    requireSoundMapping(session, options.vm);
  }
  session.requireLocalLibvirt("guest-setup");
  // What has to change in the guest, read through its agent.
  const DomainDescription domain = runningGuest(session, options.vm, "guest-setup");
  const auto checkpoint = checkpointOf(session);
  agent::Agent agent(session.hypervisor(), domain.uuid, domain.name,
                     std::chrono::seconds(options.timeoutSeconds), checkpoint);
  const auto say = [&session](const std::string& text) {
    session.verbose(text);
    session.progress().show(text);
  };
  const setup::SetupTools tools{agent, "", say,
                                [&](const std::string& text) { session.warn(text); }, checkpoint};
  const ScopeGuard clearLine([&session] { session.progress().clear(); });
  session.progress().show("reading the configuration of guest " + domain.name);
  const setup::SetupPlan plan = planFor(session, domain, options, tools);
  // The user sees the plan before anything changes; with --json there is one document, at the end.
  GuestSetupReport report = describeSetup(plan);
  report.domainName = domain.name;
  report.domain = domain.uuid;
  if (!session.style().json || plan.empty()) {
    write(session, report);
  }
  if (plan.empty()) {
    return ExitCode::done;
  }
  report.applied = isConfirmed(session, options);
  if (report.applied) {
    const StopSignals stop;
    // The answer on the terminal took time as well.
    agent.allowAtLeast(std::chrono::seconds(options.timeoutSeconds));
    session.operations().begin(events::Operation::guestSetup);
    session.operations().setDomain(domain.uuid, domain.name);
    session.progress().show("configuring guest " + domain.name);
    applySetup(tools, plan);
    const std::string result =
        "VM " + printable(domain.name) +
        (options.undo ? ": guest configuration restored" : ": guest configured");
    session.operations().done(result);
    session.note(result);
  }
  if (session.style().json) {
    write(session, report);
  }
  return report.applied ? ExitCode::done : ExitCode::pending;
}

}  // namespace

void addGuestSetup(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "guest-setup",
      "Configure the guest: addresses, MTU, interface names, ARP settings, nvidia_peermem,\n"
      "NVLink and NCCL's files");
  const auto options = std::make_shared<GuestSetupOptions>();
  command->add_option("vm", options->vm, "Domain name or UUID")->type_name("VM")->required();
  auto* yes = command->add_flag("--yes", options->yes, "Apply the changes without asking");
  command
      ->add_flag("--dry-run", options->dryRun,
                 "Only show the changes; exit code 3 if there are any")
      ->excludes(yes);
  command->add_flag("--undo", options->undo,
                    "Restore the guest's state from before the first guest-setup");
  command->add_option("--timeout", options->timeoutSeconds, "Time limit for the whole command")
      ->type_name("SECONDS")
      ->check(CLI::Range(10, 86400))
      ->capture_default_str();
  command->callback([&runner, options] {
    runner = [options](Session& session) { return setUp(session, *options); };
  });
}

}  // namespace vfpass::commands
