#include <algorithm>

#include "apply_host.hpp"
#include "commands.hpp"
#include "host_facts.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::cli {
namespace {

// A PF is as wanted if `host apply` would do nothing to it; its objections are reported.
void addDecision(Session& session, const PhysicalFunction& pf, const PfPolicy& policy,
                 report::HostEntry& entry) {
  const auto decision = plan::planHost(hostInput(session, pf, policy));
  entry.differs = !decision.plan.steps.empty();
  for (const auto& objection : decision.objections) {
    entry.failures.push_back(failureText(objection));
  }
}

report::HostEntry showPf(Session& session, const PhysicalFunction& pf, const HostPolicy& all) {
  const PfPolicy* policy = plan::policyOf(pf, all);
  PfSettings settings;
  std::vector<std::string> failures;
  try {
    settings = session.kernel().readPfSettings(pf.address);
  } catch (const Error& error) {
    failures.emplace_back(error.what());
  }
  report::HostEntry entry = describePf(pf, settings, policy);
  entry.failures = std::move(failures);
  if (policy != nullptr && entry.failures.empty()) {
    try {
      addDecision(session, pf, *policy, entry);
    } catch (const Error& error) {
      entry.failures.push_back(failureText(error));
    }
  }
  return entry;
}

// Every PF of the host, then the entries of host.yaml that no PF answers to.
std::vector<report::HostEntry> showPfs(Session& session, const HostPolicy& policy) {
  const Inventory inventory = session.inventory();
  std::vector<report::HostEntry> entries;
  for (const auto& pf : inventory.pfs) {
    entries.push_back(showPf(session, pf, policy));
  }
  for (const auto& entry : policy.pfs) {
    try {
      pfOf(entry, policy, inventory);
    } catch (const Error& error) {
      entries.push_back(failedEntry(entry, error));
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
  return describeLinks(plan::planSoftRoce(softRoceInput(session)).decisions);
}

ExitCode show(Session& session) {
  const HostPolicy& policy = soundPolicy(session);
  const report::HostReport report{showPfs(session, policy), showLinks(session)};
  report::writeHost(session.out(), report, session.style());
  const auto isPending = [](const auto& entry) { return entry.pending(); };
  const bool pending =
      std::ranges::any_of(report.pfs, isPending) || std::ranges::any_of(report.softRoce, isPending);
  return pending ? ExitCode::pending : ExitCode::done;
}

}  // namespace

void addHost(CLI::App& app, Runner& runner) {
  auto* host = app.add_subcommand(
      "host", "settings of the PFs themselves, and SoftRoCE links, from host.yaml");
  host->require_subcommand(1);
  host->add_subcommand("show",
                       "what host.yaml wants of each PF and SoftRoCE link beside what is found")
      ->callback([&runner] { runner = show; });
  const auto options = std::make_shared<HostApplyOptions>();
  auto* command = host->add_subcommand(
      "apply",
      "bring every PF of host.yaml to its settings, never taking a VF that is in use; make\n"
      "the SoftRoCE links of `soft-roce:` (RDMA in software, for tests on hosts without an\n"
      "HCA; deprecated in RHEL 10), and remove those that vfpass made and host.yaml names no\n"
      "more");
  command->add_flag("--dry-run", options->dryRun, "only say what would be done");
  command->add_flag("--allow-disruption", options->allowDisruption,
                    "also change a PF that is below a bond or has addresses, or take a link down");
  command->add_option("--only", options->only, "one part of host.yaml: `pfs` or `soft-roce`")
      ->check(CLI::IsMember({"pfs", "soft-roce"}));
  command->callback([&runner, options] {
    runner = [options](Session& session) { return applyHost(session, *options); };
  });
}

}  // namespace vfpass::cli
