#include <algorithm>
#include <ostream>

#include "commands.hpp"
#include "interrupted.hpp"
#include "subject.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/plan/detach.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {
namespace {

struct DetachOptions {
  std::string vm;
  bool dryRun = false;
};

/// Who is detached: a domain, or what a deleted one left behind.
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
    return {lease->domain, lease->domainName, std::nullopt};
  }
  throw Error("libvirt has no domain " + printable(vm) + ", and no lease names one",
              "`vfpass status` shows the leases, `virsh list --all` the domains",
              ExitCode::badInput);
}

// A guest that runs on the device would lose it under its feet.
void checkNotInGuest(const Target& target) {
  if (!target.domain || !target.domain->active) {
    return;
  }
  const auto live = domain::parseDomain(target.domain->liveXml);
  const bool plugged = std::any_of(live.claims.begin(), live.claims.end(),
                                   [](const Claim& claim) { return isOurAlias(claim.alias); });
  if (plugged) {
    throw Error("domain " + printable(target.name) + " is running with the devices in it",
                "shut it down first: this version does not unplug from a running guest",
                ExitCode::refused);
  }
}

Plan planFor(Session& session, const Target& target, const std::vector<Lease>& leases) {
  const bool xmlIsOurs = target.domain && !domain::carriesLeases(target.domain->persistentXml, {});
  const auto own = leasesOf(leases, target.uuid);
  return plan::planDetach(target.uuid, target.name, own, leases,
                          session.inventory(plan::namedFunctions(own)), xmlIsOurs);
}

ExitCode showPlan(Session& session, const DetachOptions& options) {
  const auto leases = session.readLeases();
  const Target target = findTarget(session, options.vm, leases);
  checkNotInGuest(target);
  const Plan plan = planFor(session, target, leases);
  const std::string before = target.domain ? target.domain->persistentXml : "";
  const std::string after =
      before.empty() ? "" : domain::withLeases(before, {}, domain::builtInTemplates());
  report::writePlan(session.out(), plan, domain::xmlDiff(before, after), session.style());
  return plan.steps.empty() ? ExitCode::done : ExitCode::pending;
}

std::vector<PciAddress> pfsOf(const std::vector<Lease>& leases, const Uuid& domain) {
  std::vector<PciAddress> pfs;
  for (const auto& lease : leasesOf(leases, domain)) {
    pfs.push_back(lease.pf);
  }
  return pfs;
}

ExitCode detach(Session& session, const DetachOptions& options) {
  session.requireChangesPossible("detach");
  settleInterruptedWork(session, surveyDomains(session));
  auto& database = session.database();
  const Uuid uuid = findTarget(session, options.vm, database.leases()).uuid;
  const auto domainLock = lockDomain(session, uuid);
  const Target target = findTarget(session, toString(uuid), database.leases());
  checkNotInGuest(target);

  auto locks = state::lockPfs(session.options().runDirectory, pfsOf(database.leases(), uuid),
                              session.tools().lockPatience);
  const Plan plan = planFor(session, target, database.leases());
  if (plan.steps.empty()) {
    session.note("nothing to do: nothing is attached to domain " + printable(target.name));
    return ExitCode::done;
  }
  apply::Tools tools = session.tools();
  for (const auto& warning : apply::run(plan, tools, std::move(locks))) {
    session.warn(warning);
  }
  session.note("detached from domain " + printable(target.name) +
               "; its XML and the host are as they were found");
  return ExitCode::done;
}

}  // namespace

void addDetach(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "detach", "take the VM's devices out of its XML and give them back to the host as found");
  const auto options = std::make_shared<DetachOptions>();
  command->add_option("vm", options->vm, "domain name or UUID")->required();
  command->add_flag("--dry-run", options->dryRun, "only show what would be done");
  command->callback([&runner, options] {
    runner = [options](Session& session) {
      return options->dryRun ? showPlan(session, *options) : detach(session, *options);
    };
  });
}

}  // namespace vfpass::cli
