#include <algorithm>
#include <iterator>
#include <ostream>

#include "change_options.hpp"
#include "guest_devices.hpp"
#include "interrupted_work.hpp"
#include "saved_plan.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/unused_leases.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/report/result_report.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::commands {
namespace {

struct DetachOptions : ChangeOptions {
  bool force = false;
  bool keep = false;
  unsigned timeout = deadlines::guestRelease.count();
};

/// A domain, or the leases of one that no longer exists.
struct Target {
  Uuid uuid;
  std::string name;
  std::optional<DomainDescription> domain;
};

Target findTarget(Session& session, const std::string& vm, const std::vector<Lease>& leases) {
  if (const auto found = session.hypervisor().findDomain(vm)) {
    return {found->uuid, found->name, found};
  }
  const auto uuid = parseUuid(vm);
  const auto lease = std::find_if(leases.begin(), leases.end(), [&](const Lease& each) {
    return each.domainName == vm || (uuid && each.domain == *uuid);
  });
  if (lease != leases.end()) {
    // By UUID: the domain may have been renamed since.
    if (const auto renamed = session.hypervisor().findDomain(toString(lease->domain))) {
      return {renamed->uuid, renamed->name, renamed};
    }
    return {lease->domain, lease->domainName, std::nullopt};
  }
  throw Error("no domain and no lease with the name or UUID " + printable(vm),
              "run `vfpass status` for the leases, `virsh list --all` for the domains",
              ExitCode::badInput);
}

// Unreadable metadata counts as ours.
bool carriesNothing(const std::string& xml) {
  try {
    return domain::carriesLeases(xml, {}, {});
  } catch (const Error&) {
    return false;
  }
}

Scope scopeOf(const Target& target, const commands::ScopeOptions& options) {
  return target.domain ? scopeFor(*target.domain, options) : Scope{};
}

std::vector<std::string> entriesOf(const std::vector<Lease>& leases) {
  std::vector<std::string> names;
  std::ranges::transform(leases, std::back_inserter(names), &Lease::entry);
  return names;
}

// What --keep leaves are elements of the persistent configuration. Without leases detach would
// remove them.
void requireKept(const Target& target, const std::vector<Lease>& own,
                 const DetachOptions& options) {
  const std::string domain = "domain " + printable(target.name);
  if (!options.keep || (own.empty() && carriesNothing(target.domain->persistentXml))) {
    return;
  }
  if (own.empty()) {
    throw Error(domain + " has devices of vfpass in its XML, but no leases that --keep could end",
                "run `vfpass attach " + shellArgument(target.name) + "` first", ExitCode::refused);
  }
  std::vector<Lease> liveOnly = own;
  std::erase_if(liveOnly, [](const Lease& lease) { return lease.persistent; });
  if (!liveOnly.empty()) {
    throw Error(
        "only the running " + domain + " has " + join(entriesOf(liveOnly), ", ") +
            ": its configuration has nothing that --keep could leave",
        "run `vfpass attach " + shellArgument(target.name) + "` first, or detach without --keep",
        ExitCode::refused);
  }
}

// A device that stays with the domain stays in both configurations, and so both lose the lease.
void requireScope(const Target& target, const std::vector<Lease>& leases,
                  const DetachOptions& options) {
  std::vector<Lease> staying = commands::leasesOf(leases, target.uuid);
  if (!options.keep) {
    std::erase_if(staying, [](const Lease& lease) { return !isAdopted(lease); });
  }
  const std::string domain = "domain " + printable(target.name);
  if (options.keep && !target.domain) {
    throw Error(domain + " no longer exists: there is nothing to leave the devices to",
                "run `vfpass detach " + shellArgument(target.name) + "` without --keep",
                ExitCode::badInput);
  }
  if (options.keep && !target.domain->persistent) {
    throw Error(domain + " is transient: it has no configuration that could keep the devices",
                "define it with `virsh define` first, or detach without --keep",
                ExitCode::badInput);
  }
  requireKept(target, staying, options);
  const bool active = target.domain && target.domain->active;
  if (active && target.domain->persistent && options.scope.live != options.scope.config &&
      !staying.empty()) {
    throw Error(domain + ": " + join(entriesOf(staying), ", ") + " " +
                    (staying.size() == 1 ? "stays" : "stay") +
                    " in the domain, so the leases of both configurations end",
                "omit --config and --live", ExitCode::badInput);
  }
}

plan::DetachInput inputFor(Session& session, const Target& target, const std::vector<Lease>& leases,
                           const Scope& scope, const DetachOptions& options,
                           const DomainSurvey& survey) {
  requireScope(target, leases, options);
  plan::DetachInput input;
  input.domain = target.uuid;
  input.keep = options.keep;
  input.domainName = target.name;
  input.scope = scope;
  input.leases = leases;
  input.definitions = definitionsOf(survey);
  const auto own = commands::leasesOf(leases, target.uuid);
  input.inventory = session.inventory(plan::namedFunctions(own), commands::pfsOf(own));
  session.addHolders(input.inventory, commands::pfsOf(own));
  if (target.domain && target.domain->active) {
    input.plugged = domain::entriesWithDevice(target.domain->liveXml, own);
    input.liveLeases = liveLeases(session, *target.domain, leases);
  }
  input.xmlIsOurs =
      target.domain && target.domain->persistent && !carriesNothing(target.domain->persistentXml);
  return input;
}

commands::SavedPlan toSave(const Target& target, const Plan& plan, const Scope& scope) {
  return commands::planToSave("detach", plan, scope,
                              target.domain ? target.domain->persistentXml : "");
}

ExitCode showPlan(Session& session, const DetachOptions& options) {
  const auto leases = session.readLeases();
  const Target target = findTarget(session, options.vm, leases);
  const Scope scope = scopeOf(target, options.scope);
  const DomainSurvey survey = surveyDomains(session);
  const Plan plan = plan::planDetach(inputFor(session, target, leases, scope, options, survey));
  const std::string before = target.domain && scope.config ? target.domain->persistentXml : "";
  const std::string after =
      before.empty() ? ""
      : options.keep ? domain::withDevicesKept(before, commands::leasesOf(leases, target.uuid))
                     : domain::withLeases(before, {}, domain::builtInTemplates(), {});
  if (!options.output.file.empty()) {
    commands::writeSavedPlan(options.output.file, toSave(target, plan, scope));
  }
  report::PlanText text =
      textOf(options.output, "detach", options.all.all ? target.name : options.vm, options.scope);
  text.command += options.keep ? " --keep" : "";
  report::writePlan(session.pagedOut(), plan, domain::xmlDiff(before, after), session.style(), {},
                    {}, text);
  return plan.steps.empty() ? ExitCode::done : ExitCode::pending;
}

std::vector<Lease> endedBy(const Plan& plan, const std::vector<Lease>& before) {
  std::vector<Lease> ended;
  for (const auto& step : plan.steps) {
    const auto* drop = std::get_if<DropLease>(&step.action);
    for (const auto& lease : before) {
      if (drop != nullptr && lease.domain == drop->domain && lease.entry == drop->entry) {
        ended.push_back(lease);
      }
    }
  }
  return ended;
}

// Reports as restored only what reads back as restored.
std::string reportRestored(Session& session, const std::string& domain,
                           const std::vector<Lease>& ended) {
  const auto unrestored = plan::findUnrestored(
      ended, session.inventory(plan::namedFunctions(ended), commands::pfsOf(ended)));
  for (const auto& line : unrestored) {
    session.warn(line);
  }
  return "detached from " + domain +
         (unrestored.empty() ? ": domain XML and host state restored"
                             : ": domain XML restored, host state only partly");
}

// Nobody else sets them after a reboot.
void reportKeptDevices(Session& session, const std::string& domainName,
                       const plan::DetachInput& input) {
  const auto kept = report::keptDevices(domainName, commands::leasesOf(input.leases, input.domain),
                                        input.inventory);
  session.setKept(kept);
  if (kept.commands.empty() || session.options().json) {
    return;
  }
  session.note("VFs and settings do not survive a reboot; these commands set them again:");
  for (const std::string& command : kept.commands) {
    session.out() << command << '\n';
  }
  session.note("a unit for systemd that runs them at boot (/etc/systemd/system/" + kept.unitName +
               "):");
  session.out() << '\n' << kept.unit;
}

std::string describeLeft(const plan::DetachInput& input, const std::string& domain,
                         const std::string& others) {
  std::vector<Lease> left = commands::leasesOf(input.leases, input.domain);
  std::erase_if(left, [&](const Lease& lease) {
    return !input.keep && !(isAdopted(lease) && input.plugged.contains(lease.entry));
  });
  if (left.empty()) {
    return others;
  }
  const std::string names = join(entriesOf(left), ", ");
  return input.keep ? "left " + names + " to " + domain + ": vfpass no longer manages " +
                          (left.size() == 1 ? "it" : "them")
                    : others + "; its guest keeps " + names + " and the present settings";
}

std::string describeResult(Session& session, const Target& target, const Scope& scope,
                           std::vector<Lease> ended, const plan::DetachInput& input) {
  const std::string domain = "domain " + printable(target.name);
  std::erase_if(ended, [&](const Lease& lease) {
    return input.keep || (isAdopted(lease) && input.plugged.contains(lease.entry));
  });
  if (input.keep) {
    return describeLeft(input, domain, "");
  }
  const bool persistent = target.domain && target.domain->persistent;
  const bool active = target.domain && target.domain->active;
  if (persistent && !scope.config) {
    return "unplugged from the running " + domain + "; its next start uses the devices again";
  }
  if (active && !scope.live) {
    return "detached from the configuration of " + domain + "; it keeps the devices until it stops";
  }
  return describeLeft(input, domain, reportRestored(session, domain, ended));
}

ExitCode detach(Session& session, const DetachOptions& options) {
  const auto saved = commands::readSavedPlan(options.plan, "detach");
  session.requireDomainChangesPossible("detach");
  // The domain's lock first. What an interrupted operation left is completed before the plan.
  session.operations().begin(events::Operation::detach, options.vm);
  auto& database = session.database();
  const Target first = findTarget(session, options.vm, database.leases());
  const Uuid uuid = first.uuid;
  session.operations().setDomain(uuid, first.name);
  const auto domainLock = lockDomain(session, uuid, first.name);
  const commands::DomainSurvey survey = recoverInterruptedWork(session, uuid);
  const Target target = findTarget(session, toString(uuid), database.leases());
  const Scope scope = scopeOf(target, options.scope);
  // Refusals that need no lock of a PF come before it.
  requireUnused(
      session,
      plan::planDetach(inputFor(session, target, database.leases(), scope, options, survey)),
      options.force);

  // Under the PF locks, leases and host are read again, and the plan made of them is the one to
  // run.
  auto locks =
      state::lockPfs(session.options().runDirectory, commands::pfsOf(database.leasesOf(uuid)),
                     session.tools().lockTimeout);
  const auto input = inputFor(session, target, database.leases(), scope, options, survey);
  const Plan plan = plan::planDetach(input);
  plan::throwObjections("cannot detach from domain " + printable(target.name),
                        plan::objectToActiveClaims(plan, input.inventory, survey.summaries));
  if (plan.steps.empty()) {
    session.note("nothing to do: domain " + printable(target.name) + " has no attached devices");
    return ExitCode::done;
  }
  commands::requireSame(saved, toSave(target, plan, scope), options.plan);

  apply::Tools tools = session.tools();
  tools.guestTimeout = std::chrono::seconds(options.timeout);
  session.operations().addDevices(commands::leasesOf(input.leases, uuid));
  session.run(plan, tools, std::move(locks));

  // `ended` are the leases of before the run: the database no longer has them.
  const auto ended = endedBy(plan, input.leases);
  const std::string result = describeResult(session, target, scope, ended, input);
  session.operations().done(result);
  session.note(result);
  if (input.keep) {
    reportKeptDevices(session, target.name, input);
  } else {
    warnOfKeptVfs(session, ended, input.leases, survey);
  }
  return ExitCode::done;
}

ExitCode detachOrShow(Session& session, const DetachOptions& options) {
  return options.dryRun ? showPlan(session, options)
                        : session.finish("detach", detach(session, options));
}

// The recovery also rebuilds the leases of a lost database.
std::vector<Lease> recoveredLeases(Session& session) {
  session.requireDomainChangesPossible("detach");
  const commands::DomainSurvey survey = surveyDomains(session);
  for (const auto& work : recoverInterruptedWork(session, survey)) {
    session.warn("could not complete an interrupted operation: " + work.line);
  }
  return commands::withCurrentNames(session.database().leases(), survey);
}

}  // namespace

void addDetach(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "detach",
      "Remove the VM's devices from its XML and return them to the host. If the VM is\n"
      "running, check that the devices are idle and wait for the guest to release them.");
  const auto options = std::make_shared<DetachOptions>();
  addVmsAndScope(*command, *options, "Detach all VMs that have leases, one after another");
  command->add_flag("--force", options->force,
                    "Unplug from a running guest without checking that the devices are idle");
  command
      ->add_option("--timeout", options->timeout, "Time for a running guest to release each device")
      ->type_name("SECONDS")
      ->check(CLI::Range(1U, 3600U))
      ->capture_default_str();
  command->add_flag("--keep", options->keep,
                    "Leave the devices to the domain as plain <hostdev> elements, with the VFs\n"
                    "and their settings, and print what keeps those after a reboot");
  addPlanOptions(*command, *options);
  runWhenSelected(
      *command, runner, options,
      {[options](Session& session, const std::string& vm) {
         DetachOptions one = *options;
         one.vm = vm;
         return detachOrShow(session, one);
       },
       [options](Session& session) {
         return leasedVms(options->dryRun ? session.readLeases() : recoveredLeases(session));
       }});
}

}  // namespace vfpass::commands
