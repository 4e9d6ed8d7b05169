#include <map>
#include <set>

#include "commands.hpp"
#include "interrupted.hpp"
#include "subject.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/plan/detach.hpp"
#include "vfpass/plan/garbage.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {
namespace {

std::set<std::string> entriesIn(const std::string& xml) {
  if (xml.empty()) {
    return {};
  }
  auto names = domain::devicesOfOurs(xml);
  for (const auto& lease : domain::parseDomain(xml).leases) {
    names.insert(lease.vfName);
  }
  return names;
}

plan::DomainUse useOf(Session& session, const Uuid& domain) {
  const auto found = session.hypervisor().findDomain(toString(domain));
  if (!found) {
    return {};
  }
  const auto plugged =
      found->active ? domain::devicesOfOurs(found->liveXml) : std::set<std::string>();
  return {true, found->active, entriesIn(found->persistentXml), plugged};
}

Plan planFor(Session& session, const Uuid& domain, const std::vector<Lease>& garbage,
             const std::vector<Lease>& all) {
  Plan plan{PlanKind::detach, domain, garbage.front().domainName, {}, {}};
  plan.steps = plan::planRestore(garbage, all, session.inventory(plan::namedFunctions(garbage)));
  return plan;
}

std::map<Uuid, std::vector<Lease>> byDomain(const std::vector<Lease>& leases) {
  std::map<Uuid, std::vector<Lease>> domains;
  for (const auto& lease : leases) {
    domains[lease.domain].push_back(lease);
  }
  return domains;
}

ExitCode showPlans(Session& session) {
  const auto leases = session.readLeases();
  ExitCode code = ExitCode::done;
  for (const auto& [domain, own] : byDomain(leases)) {
    const auto garbage = plan::findGarbage(own, useOf(session, domain));
    if (!garbage.empty()) {
      report::writePlan(session.out(), planFor(session, domain, garbage, leases), "",
                        session.style());
      code = ExitCode::pending;
    }
  }
  return code;
}

void collect(Session& session, const Uuid& domain) {
  const auto domainLock = lockDomain(session, domain);
  auto& database = session.database();
  const auto use = useOf(session, domain);
  std::vector<PciAddress> pfs;
  for (const auto& lease : plan::findGarbage(database.leasesOf(domain), use)) {
    pfs.push_back(lease.pf);
  }
  if (pfs.empty()) {
    return;
  }
  auto locks = state::lockPfs(session.options().runDirectory, pfs, session.tools().lockPatience);
  const auto garbage = plan::findGarbage(database.leasesOf(domain), use);
  if (garbage.empty()) {
    return;
  }
  const Plan plan = planFor(session, domain, garbage, database.leases());
  apply::Tools tools = session.tools();
  for (const auto& warning : apply::run(plan, tools, std::move(locks))) {
    session.warn(warning);
  }
  for (const auto& lease : garbage) {
    session.note("lease " + lease.vfName + " of domain " + printable(lease.domainName) +
                 ": nobody uses it any more, " + toString(lease.vf) + " is as it was found");
  }
}

ExitCode gc(Session& session) {
  session.requireChangesPossible("gc");
  // Without libvirt nobody can say what is in use: this throws then.
  settleInterruptedWork(session, surveyDomains(session), std::nullopt);
  for (const auto& [domain, leases] : byDomain(session.database().leases())) {
    collect(session, domain);
  }
  return ExitCode::done;
}

}  // namespace

void addGc(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "gc", "end the leases that no domain uses any more and give their VFs back as found");
  const auto dryRun = std::make_shared<bool>(false);
  command->add_flag("--dry-run", *dryRun, "only show what would be done");
  command->callback([&runner, dryRun] {
    runner = [dryRun](Session& session) { return *dryRun ? showPlans(session) : gc(session); };
  });
}

}  // namespace vfpass::cli
