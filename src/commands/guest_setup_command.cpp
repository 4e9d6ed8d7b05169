#include <unistd.h>

#include <chrono>
#include <ostream>

#include "commands.hpp"
#include "describe_desired_setup.hpp"
#include "guest_devices.hpp"
#include "subject.hpp"
#include "vfpass/base/bounded_read.hpp"
#include "vfpass/base/stop_signals.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/report/guest_setup_report.hpp"
#include "vfpass/setup/setup_apply.hpp"
#include "vfpass/setup/setup_changes.hpp"

namespace vfpass::commands {
namespace {

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
  report::writeGuestSetup(session.out(), report, session.style());
  session.out() << std::flush;
}

ExitCode setUp(Session& session, const GuestSetupOptions& options) {
  session.requireChangesPossible("guest-setup");
  if (options.vm.empty()) {
    throw Error("no VM specified", "run `vfpass guest-setup VM`", ExitCode::badInput);
  }
  session.requireLocalLibvirt("guest-setup");
  // What has to change in the guest, read through its agent.
  const DomainDescription domain = runningGuest(session, options.vm, "guest-setup");
  agent::Agent agent(session.hypervisor(), domain.uuid, domain.name,
                     std::chrono::seconds(options.timeoutSeconds), StopSignals::throwIfAsked);
  const setup::SetupTools tools{agent, "", [&](const std::string& text) { session.verbose(text); },
                                [&](const std::string& text) { session.warn(text); },
                                StopSignals::throwIfAsked};
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
  command->add_option("vm", options->vm, "Domain name or UUID")->type_name("VM");
  auto* yes = command->add_flag("--yes", options->yes, "Apply the changes without asking");
  command
      ->add_flag("--dry-run", options->dryRun,
                 "Only show the changes; exit status 3 if there are any")
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
