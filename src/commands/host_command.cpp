#include <algorithm>

#include "commands.hpp"
#include "host_policy_input.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::commands {
namespace {

// A PF matches its policy if `host apply` would not change it; objections are reported.
void addDecision(Session& session, const PhysicalFunction& pf, const PfPolicy& policy,
                 DefinedUsers& users, report::HostEntry& entry) {
  auto decision = plan::planHost(hostInput(session, pf, policy, users.ofRemoved(pf, policy)));
  objectToSpace(session, decision);
  entry.differs = !decision.plan.steps.empty();
  for (const auto& objection : decision.objections) {
    entry.failures.push_back(commands::withRemedy(objection));
  }
}

report::HostEntry showPf(Session& session, const PhysicalFunction& pf, const HostPolicy& all,
                         DefinedUsers& users) {
  const PfPolicy* policy = plan::policyOf(pf, all);
  PfSettings settings;
  std::vector<std::string> failures;
  try {
    settings = session.kernel().readPfSettings(pf.address);
  } catch (const Error& error) {
    failures.emplace_back(error.what());
  }
  report::HostEntry entry = commands::describePf(pf, settings, policy);
  entry.failures = std::move(failures);
  if (policy != nullptr && entry.failures.empty()) {
    try {
      addDecision(session, pf, *policy, users, entry);
    } catch (const Error& error) {
      entry.failures.push_back(commands::withRemedy(error));
    }
  }
  return entry;
}

// Every PF of the host, then the entries of host.yaml that match no PF.
std::vector<report::HostEntry> showPfs(Session& session, const HostPolicy& policy) {
  const Inventory inventory = session.inventory();
  std::vector<report::HostEntry> entries;
  DefinedUsers users(session);
  for (const auto& pf : inventory.pfs) {
    entries.push_back(showPf(session, pf, policy, users));
  }
  for (const auto& entry : policy.pfs) {
    try {
      commands::pfOf(entry, policy, inventory);
    } catch (const Error& error) {
      entries.push_back(commands::failedEntry(entry, error));
    }
  }
  return entries;
}

std::vector<report::SoftRoceEntry> showLinks(Session& session) {
  const auto links = session.kernel().readRdmaLinks();
  if (session.configuration().softRoce.empty() &&
      std::ranges::none_of(links, &RdmaLink::softRoce)) {
    return {};
  }
  return commands::describeLinks(plan::planSoftRoce(softRoceInput(session)).decisions);
}

ExitCode show(Session& session) {
  const HostPolicy& policy = soundPolicy(session);
  const report::HostReport report{showPfs(session, policy), showLinks(session),
                                  describeMemoryCheck(session)};
  report::writeHost(session.pagedOut(), report, session.style());
  reportFailures(session, report);
  const auto isPending = [](const auto& entry) { return entry.pending(); };
  const bool pending = std::ranges::any_of(report.pfs, isPending) ||
                       std::ranges::any_of(report.softRoce, isPending) ||
                       (report.memoryCheck && report.memoryCheck->differs());
  return pending ? ExitCode::pending : ExitCode::done;
}

}  // namespace

void addHost(CLI::App& app, Runner& runner) {
  auto* host = app.add_subcommand(
      "host", "Manage the settings of the PFs themselves and SoftRoCE links from host.yaml");
  host->require_subcommand(1);
  host->add_subcommand("show",
                       "Show the wanted (host.yaml) and current settings of each PF and SoftRoCE\n"
                       "link")
      ->callback([&runner] { runner = show; });
  const auto options = std::make_shared<HostApplyOptions>();
  auto* command = host->add_subcommand(
      "apply",
      "Apply the settings in host.yaml to its PFs, without removing a VF that is in use.\n"
      "Create the SoftRoCE links in `soft-roce:` (software RDMA for testing on hosts without\n"
      "an HCA; deprecated in RHEL 10), and remove those that vfpass created and host.yaml no\n"
      "longer lists.");
  addSavedPlanOptions(*command, options->dryRun, options->out, options->plan);
  command->add_flag(
      "--allow-disruption", options->allowDisruption,
      "Also change a PF that is part of a bond or has addresses, and take links down");
  command->add_option("--only", options->only, "Apply one part of host.yaml: `pfs` or `soft-roce`")
      ->type_name("PART")
      ->check(CLI::IsMember({"pfs", "soft-roce"}));
  command->callback([&runner, options] {
    runner = [options](Session& session) { return applyHost(session, *options); };
  });
  addHostGuids(*host, runner);
}

}  // namespace vfpass::commands
