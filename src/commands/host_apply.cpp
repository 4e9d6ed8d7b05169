#include "commands.hpp"

#include <algorithm>

#include "all_vms.hpp"
#include "host_policy_input.hpp"
#include "interrupted_work.hpp"
#include "saved_plan.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/memory_checks.hpp"

namespace vfpass::commands {
namespace {

// Recovers an earlier `host apply` that was killed. Does not need libvirt, which may not run yet.
void recoverHostPlans(Session& session) {
  const auto open = session.openWork();
  if (std::ranges::none_of(open, [](const Plan& plan) { return plan.kind == PlanKind::host; })) {
    return;
  }
  apply::Tools tools = session.hostTools();
  const auto recovered = commands::reportedRecovery(session, tools, Uuid{}, std::nullopt);
  for (const auto& work : recovered.unrecovered) {
    session.warn("could not complete an interrupted operation: " + work.line);
  }
}

void runPlan(Session& session, const Plan& plan, std::vector<state::FileLock> locks) {
  if (plan.steps.empty()) {
    return;
  }
  apply::Tools tools = session.hostTools();
  session.run(plan, tools, std::move(locks));
}

struct PolicyOutcome {
  report::HostEntry entry;
  ExitCode code = ExitCode::done;
};

std::string changesText(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " change" : " changes");
}

// A PF that was not changed has no entry, unless it was to be.
void recordOutcome(Session& session, const PciAddress& address, const PolicyOutcome& outcome) {
  const auto& [entry, code] = outcome;
  if (!entry.failures.empty()) {
    session.operations().failed(Error(join(entry.failures, "; "), {}, code));
  } else if (!entry.steps.empty()) {
    session.operations().done("PF " + toString(address) + ": " + changesText(entry.steps.size()) +
                              " by host.yaml");
  }
}

// Applies the policy, or with dryRun only plans it. Objections become failures in `entry`.
PolicyOutcome runPolicy(Session& session, const PfPolicy& policy, const PciAddress& address,
                        const HostApplyOptions& options, DefinedUsers& definitions) {
  auto users = definitions.ofRemoved(session.kernel().readPf(address), policy);  // without locks
  auto locks = options.dryRun
                   ? std::vector<state::FileLock>()
                   : state::lockPfs(session.options().runDirectory, {address}, deadlines::lock);
  auto input = hostInput(session, session.kernel().readPf(address), policy, std::move(users));
  input.allowDisruption = options.allowDisruption;
  auto decision = plan::planHost(input);
  objectToSpace(session, decision);
  PolicyOutcome outcome;
  for (const auto& objection : decision.objections) {
    outcome.entry.failures.push_back(commands::withRemedy(objection));
  }
  for (const auto& note : decision.plan.notes) {
    session.warn(note);
  }
  outcome.code = plan::worstCode(decision.objections);
  outcome.entry.steps = decision.plan.steps;
  if (!options.dryRun) {
    runPlan(session, decision.plan, std::move(locks));
    recordOutcome(session, address, outcome);
  } else if (!decision.plan.steps.empty()) {
    outcome.code = ExitCode::pending;
  }
  return outcome;
}

PolicyOutcome applyPf(Session& session, const PfPolicy& policy, const PciAddress& address,
                      const HostApplyOptions& options, DefinedUsers& definitions) {
  PolicyOutcome outcome;
  session.operations().addPf(address);
  try {
    outcome = runPolicy(session, policy, address, options, definitions);
  } catch (const Error& error) {
    session.operations().failed(error);
    outcome.entry.failures.push_back(commands::withRemedy(error));
    outcome.code = error.code();
  }
  const auto settings = session.kernel().readPfSettings(address);
  auto entry = commands::describePf(session.kernel().readPf(address), settings, &policy);
  entry.steps = std::move(outcome.entry.steps);
  entry.failures = std::move(outcome.entry.failures);
  outcome.entry = std::move(entry);
  return outcome;
}

PolicyOutcome applyPolicy(Session& session, const PfPolicy& policy, const HostPolicy& all,
                          const Inventory& inventory, const HostApplyOptions& options,
                          DefinedUsers& definitions) {
  if (!options.dryRun) {  // which has no entries
    session.operations().begin(events::Operation::hostApply);
  }
  try {
    return applyPf(session, policy, commands::pfOf(policy, all, inventory).address, options,
                   definitions);
  } catch (const Error& error) {
    session.operations().failed(error);
    return {commands::failedEntry(policy, error), error.code()};
  }
}

void applyPfs(Session& session, const HostPolicy& policy, const HostApplyOptions& options,
              report::HostReport& report, std::vector<ExitCode>& codes) {
  const Inventory inventory = policy.pfs.empty() ? Inventory{} : session.inventory();
  DefinedUsers definitions(session);
  for (const auto& entry : policy.pfs) {
    PolicyOutcome outcome = applyPolicy(session, entry, policy, inventory, options, definitions);
    report.pfs.push_back(std::move(outcome.entry));
    codes.push_back(outcome.code);
  }
}

// Updates the planned links with their state after the plan has run.
std::vector<report::SoftRoceEntry> withCurrentState(Session& session,
                                                    std::vector<report::SoftRoceEntry> entries) {
  const auto input = softRoceInput(session);
  const auto now = commands::describeLinks(
      plan::decideSoftRoce(input.policy, input.found, input.records, input.bootId));
  for (auto& entry : entries) {
    const auto found = std::ranges::find(now, entry.name, &report::SoftRoceEntry::name);
    entry.found = found == now.end() ? std::nullopt : found->found;
    entry.madeByVfpass = found != now.end() && found->madeByVfpass;
  }
  return entries;
}

void addSteps(const Plan& plan, std::vector<report::SoftRoceEntry>& entries) {
  for (const auto& step : plan.steps) {
    const auto entry =
        std::ranges::find(entries, plan::softRoceName(step.action), &report::SoftRoceEntry::name);
    if (entry != entries.end()) {
      entry->steps.push_back(step);
    }
  }
}

// A plan that fails is rolled back as a whole, so none of its links has changed.
void runLinks(Session& session, const Plan& plan, std::vector<state::FileLock> locks,
              std::vector<report::SoftRoceEntry>& entries, std::vector<ExitCode>& codes) {
  session.operations().begin(events::Operation::hostApply);
  try {
    runPlan(session, plan, std::move(locks));
    if (!plan.steps.empty()) {
      session.operations().done("SoftRoCE links: " + changesText(plan.steps.size()) +
                                " by host.yaml");
    }
  } catch (const Error& error) {
    session.operations().failed(error);
    for (auto& entry : entries) {
      if (!entry.steps.empty()) {
        entry.failures.push_back(commands::withRemedy(error));
        entry.steps.clear();
      }
    }
    codes.push_back(error.code());
  }
}

std::vector<report::SoftRoceEntry> applyLinks(Session& session, const HostApplyOptions& options,
                                              std::vector<ExitCode>& codes) {
  std::vector<state::FileLock> locks;
  if (!options.dryRun) {
    locks.push_back(state::FileLock::acquire(
        state::softRoceLockFile(session.options().runDirectory), deadlines::lock));
  }
  const auto links = session.kernel().readRdmaLinks();
  if (session.configuration().softRoce.empty() &&
      std::ranges::none_of(links, &RdmaLink::softRoce)) {
    return {};
  }
  const auto planned = plan::planSoftRoce(softRoceInput(session));
  auto entries = commands::describeLinks(planned.decisions);
  addSteps(planned.plan, entries);
  for (const auto& decision : planned.decisions) {
    codes.push_back(decision.objection ? decision.objection->code : ExitCode::done);
  }
  for (const auto& note : planned.plan.notes) {
    session.warn(note);
  }
  if (options.dryRun) {
    codes.push_back(planned.plan.steps.empty() ? ExitCode::done : ExitCode::pending);
    return entries;
  }
  runLinks(session, planned.plan, std::move(locks), entries, codes);
  return withCurrentState(session, std::move(entries));
}

void applySoftRoce(Session& session, const HostApplyOptions& options, report::HostReport& report,
                   std::vector<ExitCode>& codes) {
  const bool seenBefore = !options.plan.empty();  // when the plan was saved
  if (!session.configuration().softRoce.empty() && !seenBefore) {
    session.note(
        "SoftRoCE is for testing: Red Hat ships it as a technology preview and deprecates it in "
        "RHEL 10, and its performance does not represent hardware RDMA");
  }
  try {
    report.softRoce = applyLinks(session, options, codes);
  } catch (const Error& error) {  // the report still shows the results for the PFs
    session.warn("SoftRoCE links: " + commands::withRemedy(error));
    codes.push_back(error.code());
  }
}

void applyParts(Session& session, const HostPolicy& policy, const HostApplyOptions& options,
                report::HostReport& report, std::vector<ExitCode>& codes) {
  if (options.only != "soft-roce") {
    applyPfs(session, policy, options, report, codes);
  }
  if (options.only != "pfs") {
    applySoftRoce(session, options, report, codes);
  }
}

// Also of a host.yaml with mistakes, in which it is off. Returns whether there is, or in a dry run
// would be, a change. A saved plan does not have it: what that does, its dry run has shown.
bool applyMemoryChecks(Session& session, const HostApplyOptions& options) {
  const bool wanted = session.configuration().host.gpuMemoryCheck;
  const auto& runDirectory = session.options().runDirectory;
  const auto checks = wanted ? MemoryChecks::on : MemoryChecks::off;
  const auto applied = state::observedMemoryChecks(runDirectory);
  if (applied == checks || (!applied && options.dryRun && !wanted)) {
    return false;
  }
  if (!applied && options.dryRun) {
    session.note("whether gpu-memory-check is applied is unknown: this user cannot look into " +
                 printable(runDirectory.string()) + "; run the dry run as root");
    return false;
  }
  if (!options.plan.empty()) {
    session.note(
        "gpu-memory-check in host.yaml is not part of a saved plan; `vfpass host apply` without "
        "--plan applies it");
    return false;
  }
  const std::string change = std::string("the memory of GPUs is ") +
                             (options.dryRun ? "to be " : "now ") +
                             (wanted ? "checked" : "left alone") +
                             " at the end of their leases (gpu-memory-check in host.yaml)";
  if (!options.dryRun) {
    session.operations().begin(events::Operation::hostApply);
    state::setMemoryChecks(runDirectory, checks);
    session.operations().done(change);
  }
  session.note(change);
  return true;
}

commands::SavedPlan toSave(const report::HostReport& report) {
  commands::SavedPlan plan{"host apply", "", "", "", {}};
  for (const auto& entry : report.pfs) {
    commands::addSteps(plan, entry.name, entry.steps);
  }
  for (const auto& entry : report.softRoce) {
    commands::addSteps(plan, "soft-roce", entry.steps);
  }
  return plan;
}

// A plan without what could not be planned would be another one than what `--plan` makes of it once
// the cause is resolved.
void saveIfComplete(Session& session, const std::string& file, const report::HostReport& report,
                    ExitCode code) {
  if (file.empty()) {
    return;
  }
  if (code == ExitCode::done || code == ExitCode::pending) {
    commands::writeSavedPlan(file, toSave(report));
  } else {
    session.warn(printable(file) +
                 ": the plan is not saved, because a part of host.yaml cannot be applied; resolve "
                 "the problems, then run the dry run again");
  }
}

// Before any change: the plan of all parts must be the saved one. Each part is planned once more
// under its lock.
void requireSavedPlan(Session& session, const HostPolicy& policy, HostApplyOptions options,
                      const commands::SavedPlan& saved) {
  options.dryRun = true;
  report::HostReport now;
  std::vector<ExitCode> codes;
  applyParts(session, policy, options, now, codes);
  const commands::SavedPlan plan = toSave(now);
  if (!plan.steps.empty()) {
    commands::requireSame(saved, plan, options.plan);
  }
}

}  // namespace

ExitCode applyHost(Session& session, const HostApplyOptions& options) {
  const auto saved = commands::readSavedPlan(options.plan, "host apply");
  if (!options.dryRun) {
    session.requireChangesPossible("host apply");
  }
  const bool checksChange = applyMemoryChecks(session, options);
  const HostPolicy& policy = soundPolicy(session);
  if (!options.dryRun) {
    recoverHostPlans(session);
  }
  if (saved) {
    requireSavedPlan(session, policy, options, *saved);
  }
  report::HostReport report;
  std::vector<ExitCode> codes{checksChange && options.dryRun ? ExitCode::pending : ExitCode::done};
  applyParts(session, policy, options, report, codes);
  report.memoryCheck = describeMemoryCheck(session);
  saveIfComplete(session, options.out, report, worstOf(codes));
  const bool empty = report.pfs.empty() && report.softRoce.empty();
  if (empty && !checksChange) {
    session.note("nothing to do: host.yaml lists no PFs and no SoftRoCE links");
  }
  if (!empty || session.style().json) {
    report::writeHost(session.out(), report, session.style());
  }
  reportFailures(session, report);
  return worstOf(codes);
}

}  // namespace vfpass::commands
