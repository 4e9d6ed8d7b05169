#include <ostream>

#include "attach_input.hpp"
#include "change_options.hpp"
#include "drift.hpp"
#include "guest_devices.hpp"
#include "host_facts.hpp"
#include "interrupted_work.hpp"
#include "saved_plan.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/inventory/read_inventory.hpp"
#include "vfpass/plan/plan_attach.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::commands {
namespace {

void reportResult(Session& session, const std::string& vm, const plan::AttachDecision& decision) {
  if (decision.leases.empty()) {
    return;
  }
  const GuestMachine machine = guestMachineOf(session, vm, decision.leases);
  for (const auto& lease : decision.leases) {
    const bool vf = isVf(lease);
    const auto address = commands::addressInGuest(machine, lease).value_or(lease.guest.address);
    session.note(lease.entry + ": " + describeDevice(lease) +
                 (vf ? " (" + toString(lease.device) + ")" : "") + ", in the guest at " +
                 toString(address));
  }
}

std::string countOf(std::size_t devices) {
  return std::to_string(devices) + (devices == 1 ? " device" : " devices");
}

void warnOfServices(Session& session, const Mapping& mapping) {
  for (const auto& line : commands::missingServices(session, {mapping})) {
    session.warn(line);
  }
}

void warnOfManagedSave(Session& session, const DomainDescription& domain) {
  if (const std::string line = commands::managedSaveDrift(domain); !line.empty()) {
    session.warn(line);
  }
}

ExitCode attach(Session& session, const ChangeOptions& options) {
  // The domain, under its lock and without interrupted work of an earlier command.
  // The faults of the user's files first: they are known without libvirt.
  const auto saved = commands::readSavedPlan(options.plan, "attach");
  session.requireChangesPossible("attach");
  session.operations().begin(events::Operation::attach, options.vm);
  requireSoundMapping(session, options.vm);
  session.requireDomainChangesPossible("attach");
  const commands::Subject first = findSubject(session, options.vm);
  session.operations().setDomain(first.domain.uuid, first.domain.name);
  const auto domainLock = lockDomain(session, first.domain.uuid, first.domain.name);
  const commands::DomainSurvey survey = recoverInterruptedWork(session, first.domain.uuid);
  // Read again: another attach, or the recovery, may have changed the domain in the meantime.
  commands::Subject subject = findSubject(session, options.vm);
  const Scope scope = scopeFor(subject.domain, options.scope);

  // Before taking the PF locks: this decides which PFs they are.
  settleNear(session, subject, session.database().leases());
  const auto pfs =
      pfsOf(subject, inventory::readPfIdentities(session.root(), session.serialsToSelect()),
            session.database().leases());
  // The plan, from what the host is like under these locks.
  auto locks = state::lockPfs(session.options().runDirectory, pfs, session.tools().lockTimeout);
  const auto leases = session.database().leases();
  auto input =
      attachInput(session, subject, survey, leases, scope, readHostFor(session, subject, leases));
  auto decision = plan::decideAttach(input);
  plan::throwObjections("cannot attach to domain " + printable(subject.domain.name),
                        checkVfSpace(session, decision.plan));
  if (decision.plan.steps.empty()) {
    session.note("nothing to do: domain " + printable(subject.domain.name) +
                 " matches its mapping");
    noteSettings(session, input, decision);
    warnOfManagedSave(session, subject.domain);
    warnOfServices(session, subject.mapping);
    return ExitCode::done;
  }
  commands::requireSame(
      saved, commands::planToSave("attach", decision.plan, scope, subject.domain.persistentXml),
      options.plan);
  // The same plan with the generation of this attach, applied step by step.
  input.generation = session.database().nextGeneration();
  decision = plan::decideAttach(input);
  apply::Tools tools = session.tools();
  session.operations().addDevices(decision.leases);
  session.run(decision.plan, tools, std::move(locks));
  session.operations().done("attached " + countOf(decision.leases.size()) + " to domain " +
                            printable(subject.domain.name));
  // What else the user has to know.
  for (const auto& note : decision.plan.notes) {
    if (note == input.backendNote ||
        note == plan::partitionNote(input)) {  // the mapping asks for it
      session.note(note);
    } else {
      session.warn(note);
    }
  }
  for (const auto& note : plan::unreadOriginals(input, decision.leases)) {
    session.warn(note);
  }
  for (const auto& reason : subject.nearReasons) {
    session.note(reason);
  }
  noteSettings(session, input, decision);
  reportResult(session, toString(subject.domain.uuid), decision);
  warnOfManagedSave(session, subject.domain);
  warnOfServices(session, subject.mapping);
  return ExitCode::done;
}

ExitCode attachOrShow(Session& session, const ChangeOptions& options) {
  return options.dryRun ? showPlan(session, options.vm, options.scope, options.output)
                        : session.finish("attach", attach(session, options));
}

VmList vmsToAttach(Session& session, const ChangeOptions& options) {
  VmList list = mappedVms(session);
  if (!options.dryRun) {
    session.requireDomainChangesPossible("attach");
  }
  return list;
}

}  // namespace

void addAttach(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "attach",
      "Create and configure the VM's VFs, unbind them and its PCI functions from the host's\n"
      "drivers, lease them to the VM and add them to its XML. Running it again changes\n"
      "nothing.");
  const auto options = std::make_shared<ChangeOptions>();
  addVmsAndScope(*command, *options, "Attach all VMs that have a mapping, one after another");
  addPlanOptions(*command, *options);
  runWhenSelected(*command, runner, options,
                  {[options](Session& session, const std::string& vm) {
                     ChangeOptions one = *options;
                     one.vm = vm;
                     return attachOrShow(session, one);
                   },
                   [options](Session& session) { return vmsToAttach(session, *options); }});
}

}  // namespace vfpass::commands
