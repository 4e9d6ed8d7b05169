#include <unistd.h>

#include <chrono>
#include <iostream>
#include <ostream>

#include "commands.hpp"
#include "running_guest.hpp"
#include "setup_wish.hpp"
#include "stop_signals.hpp"
#include "subject.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/guest/describe_setup.hpp"
#include "vfpass/guest/setup_apply.hpp"
#include "vfpass/report/guest_setup_report.hpp"

namespace vfpass::cli {
namespace {

struct GuestSetupOptions {
  std::string vm;
  bool yes = false;
  bool dryRun = false;
  bool undo = false;
  unsigned timeoutSeconds = 300;
};

guest::SetupPlan planFor(Session& session, const DomainDescription& domain,
                         const GuestSetupOptions& options, const guest::SetupTools& tools) {
  if (options.undo) {
    const guest::SetupSight sight = lookAtGuest(tools, {});
    return guest::planUndo(sight.view, sight.record);
  }
  const Subject subject = findSubject(session, toString(domain.uuid));
  const auto leases = runningLeases(session, domain);
  guest::SetupWish wish = setupWish(subject.mapping, domain, leases);
  const guest::SetupSight sight = lookAtGuest(tools, wish);
  completeWish(session, leases, sight.view, wish);
  return guest::planSetup(wish, sight.view, sight.record);
}

// Only a person at a terminal is asked; a script says --yes.
bool isConfirmed(Session& session, const GuestSetupOptions& options) {
  if (options.dryRun || options.yes || session.style().json) {
    return options.yes && !options.dryRun;
  }
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
    return false;
  }
  session.out() << "\nmake these changes in the guest? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void write(Session& session, const GuestSetupReport& report) {
  report::writeGuestSetup(session.out(), report, session.style());
  session.out() << std::flush;
}

ExitCode setUp(Session& session, const GuestSetupOptions& options) {
  session.requireChangesPossible("guest-setup");
  if (options.vm.empty()) {
    throw Error("which VM?", "`vfpass guest-setup VM`", ExitCode::badInput);
  }
  session.requireLocalLibvirt("guest-setup");
  const DomainDescription domain = runningGuest(session, options.vm, "guest-setup");
  guest::Agent agent(session.hypervisor(), domain.uuid, domain.name,
                     std::chrono::seconds(options.timeoutSeconds));
  const guest::SetupTools tools{agent, "", [&](const std::string& text) { session.verbose(text); },
                                [&](const std::string& text) { session.warn(text); },
                                StopSignals::throwIfAsked};
  const guest::SetupPlan plan = planFor(session, domain, options, tools);
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
    agent.allowAtLeast(std::chrono::seconds(options.timeoutSeconds));  // a person takes time, too
    applySetup(tools, plan);
    session.note("the guest of VM " + printable(domain.name) +
                 (options.undo ? " is as it was found" : " is set up"));
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
      "addresses, MTU, ARP settings, nvidia_peermem, NVLink and NCCL's files in the guest");
  const auto options = std::make_shared<GuestSetupOptions>();
  command->add_option("vm", options->vm, "domain name or UUID");
  auto* yes = command->add_flag("--yes", options->yes, "make the changes without asking");
  command->add_flag("--dry-run", options->dryRun, "only show them; exit 3 when there are any")
      ->excludes(yes);
  command->add_flag("--undo", options->undo, "put back what was there before the first set-up");
  command->add_option("--timeout", options->timeoutSeconds, "seconds for all of it")
      ->check(CLI::Range(10, 86400))
      ->capture_default_str();
  command->callback([&runner, options] {
    runner = [options](Session& session) { return setUp(session, *options); };
  });
}

}  // namespace vfpass::cli
