#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "commands.hpp"
#include "interrupted_work.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/plan_detach.hpp"
#include "vfpass/plan/unused_leases.hpp"
#include "vfpass/report/plan_report.hpp"
#include "vfpass/state/locks.hpp"
#include "vfpass/state/retention.hpp"

namespace vfpass::commands {
namespace {

// nullopt: the XML, which may have any of them, cannot be read.
std::optional<std::set<std::string>> devicesIn(const DomainXml& xml,
                                               const std::vector<Lease>& leases) {
  try {
    return xml.empty() ? std::set<std::string>() : domain::entriesWithDevice(xml, leases);
  } catch (const Error&) {  // the survey has warned
    return std::nullopt;
  }
}

std::optional<std::set<std::string>> entriesIn(const DomainXml& xml) {
  auto names = devicesIn(xml, {});  // an adopted element is there with and without a lease
  if (!names || xml.empty()) {
    return names;
  }
  const auto parsed = domain::parseDomain(xml);
  if (!parsed.metadataProblem.empty()) {
    return std::nullopt;
  }
  for (const auto& lease : parsed.leases) {
    names->insert(lease.entry);
  }
  return names;
}

// Also by a file with mistakes.
bool isMapped(Session& session, const Lease& lease) {
  const auto& configuration = session.configuration();
  const std::string uuid = toString(lease.domain);
  return config::findMapping(configuration, lease.domainName, uuid) != nullptr ||
         config::findFaulty(configuration, lease.domainName, uuid) != nullptr;
}

// `found`: null if libvirt has no such domain.
plan::DomainUse useOf(Session& session, const DomainDescription* found,
                      const std::vector<Lease>& leases) {
  if (found == nullptr) {
    return {false, !leases.empty() && isMapped(session, leases.front()), false, {}, {}};
  }
  const auto configured = entriesIn(found->persistentXml);
  const auto plugged = devicesIn(found->liveXml, leases);
  return {true,
          false,
          found->active,
          configured.value_or(std::set<std::string>()),
          plugged.value_or(std::set<std::string>()),
          !configured,
          !plugged};
}

Inventory inventoryFor(Session& session, const std::vector<Lease>& garbage) {
  const auto pfs = commands::pfsOf(garbage);
  Inventory inventory = session.inventory(plan::namedFunctions(garbage), pfs);
  session.addHolders(inventory, pfs);
  return inventory;
}

Plan planFor(const Uuid& domain, const std::vector<Lease>& garbage, const std::vector<Lease>& all,
             const Inventory& inventory, const commands::DomainSurvey& survey) {
  Plan plan{PlanKind::detach, domain, garbage.front().domainName, {}, {}};
  auto restoration = plan::planRestore(garbage, all, inventory, definitionsOf(survey));
  plan.steps = std::move(restoration.steps);
  plan.notes = std::move(restoration.notes);
  return plan;
}

std::map<Uuid, std::vector<Lease>> byDomain(const std::vector<Lease>& leases) {
  std::map<Uuid, std::vector<Lease>> domains;
  for (const auto& lease : leases) {
    domains[lease.domain].push_back(lease);
  }
  return domains;
}

// Leases of a domain that libvirt does not have (yet, or again), but that a mapping names.
void reportKept(Session& session, const std::vector<Lease>& leases, const plan::DomainUse& use) {
  if (!use.exists && use.mapped && !leases.empty()) {
    const std::string name = printable(leases.front().domainName);
    session.note("kept the leases of domain " + name +
                 ": libvirt has no such domain, but a mapping names it; run `vfpass detach " +
                 shellQuoted(name) + "` to release them");
  }
}

void noteNothingToDo(Session& session, const std::vector<Lease>& leases) {
  if (session.hasDoneNothing()) {
    session.note(leases.empty() ? "nothing to do: there are no leases"
                                : "nothing to do: domains use all leases");
  }
}

ExitCode showPlans(Session& session) {
  const auto leases = session.readLeases();
  std::vector<Plan> plans;
  const auto survey = leases.empty() ? commands::DomainSurvey{} : surveyDomains(session);
  for (const auto& [domain, own] : byDomain(leases)) {
    const auto use = useOf(session, survey.find(domain), own);
    reportKept(session, own, use);
    const auto garbage = plan::findGarbage(own, use);
    if (!garbage.empty()) {
      plans.push_back(planFor(domain, garbage, leases, inventoryFor(session, garbage), survey));
    }
  }
  report::writePlans(session.out(), plans, session.style());
  if (plans.empty()) {
    noteNothingToDo(session, leases);
  }
  return plans.empty() ? ExitCode::done : ExitCode::pending;
}

void reportReleased(Session& session, const std::vector<Lease>& garbage) {
  const auto inventory = session.inventory(plan::namedFunctions(garbage), commands::pfsOf(garbage));
  for (const auto& line : plan::findUnrestored(garbage, inventory)) {
    session.warn(line);
  }
  for (const auto& lease : garbage) {
    session.note("released lease " + lease.entry + " of domain " + printable(lease.domainName) +
                 " (" + toString(lease.device) + "), which no domain uses");
  }
}

// Whether, at the time of the survey, the domain used all of its leases.
bool usedAll(Session& session, const commands::DomainSurvey& survey, const Uuid& domain,
             const std::vector<Lease>& leases) {
  const DomainDescription* found = survey.find(domain);
  return found != nullptr && plan::findGarbage(leases, useOf(session, found, leases)).empty();
}

// The caller holds the domain's lock. Whoever held it before may have died, or left an operation
// open, since gc recovered what it found at its start: its leases are not garbage.
void recoverLeftWork(Session& session, const Uuid& domain) {
  if (!session.database().openOperationsOf(domain).empty()) {
    apply::Tools tools = session.tools();
    apply::throwUnrecovered(reportedRecovery(session, tools, domain, domain).unrecovered);
  }
}

void collect(Session& session, const commands::DomainSurvey& survey, const Uuid& domain,
             const std::string& name) {
  session.operations().begin(events::Operation::gc);
  const auto domainLock = lockDomain(session, domain, name);
  recoverLeftWork(session, domain);
  auto& database = session.database();
  const auto found = session.hypervisor().findDomain(toString(domain));
  const auto use = useOf(session, found ? &*found : nullptr, database.leasesOf(domain));
  reportKept(session, database.leasesOf(domain), use);
  const auto pfs = commands::pfsOf(plan::findGarbage(database.leasesOf(domain), use));
  if (pfs.empty()) {
    return;
  }
  auto locks = state::lockPfs(session.options().runDirectory, pfs, session.tools().lockTimeout);
  const auto garbage = plan::findGarbage(database.leasesOf(domain), use);
  if (garbage.empty()) {
    return;
  }
  session.operations().setDomain(domain, garbage.front().domainName);
  session.operations().addDevices(garbage);
  const Inventory inventory = inventoryFor(session, garbage);
  const auto all = database.leases();
  const Plan plan = planFor(domain, garbage, all, inventory, survey);
  plan::throwObjections("cannot release the leases of domain " + printable(plan.domainName),
                        plan::objectToActiveClaims(plan, inventory, survey.summaries));
  apply::Tools tools = session.tools();
  session.run(plan, tools, std::move(locks));
  session.operations().done("released " + std::to_string(garbage.size()) +
                            (garbage.size() == 1 ? " lease" : " leases") + " of domain " +
                            printable(plan.domainName) + " that no domain uses");
  reportReleased(session, garbage);
  warnOfKeptVfs(session, garbage, all, survey);
}

void forgetOldRecords(Session& session, const commands::DomainSurvey& survey) {
  std::set<Uuid> domains;
  for (const auto& [uuid, domain] : survey.domains) {
    domains.insert(uuid);
  }
  for (const auto& unreadable : survey.unreadable) {
    domains.insert(unreadable.uuid);
  }
  for (const auto& lease : session.database().leases()) {
    domains.insert(lease.domain);
  }
  state::forgetOldRecords(
      {session.options().stateDirectory, session.options().runDirectory, domains},
      session.database());
}

ExitCode gc(Session& session) {
  session.requireDomainChangesPossible("gc");
  const commands::DomainSurvey survey = surveyDomains(session);
  const auto unrecovered = recoverInterruptedWork(session, survey);
  ExitCode code = ExitCode::done;
  for (const auto& [domain, leases] : byDomain(session.database().leases())) {
    const bool interrupted =
        std::ranges::find(unrecovered, domain, &apply::UnrecoveredOperation::domain) !=
        unrecovered.end();
    if (interrupted || usedAll(session, survey, domain, leases)) {
      continue;
    }
    try {
      collect(session, survey, domain, leases.front().domainName);
    } catch (const Error& error) {  // a device in use does not stop the other domains' release
      code = session.fail(error);
    }
  }
  forgetOldRecords(session, survey);
  apply::throwUnrecovered(unrecovered);
  noteNothingToDo(session, session.database().leases());
  return code;
}

}  // namespace

void addGc(CLI::App& app, Runner& runner) {
  auto* command =
      app.add_subcommand("gc", "Release leases that no domain uses and restore their devices");
  const auto dryRun = std::make_shared<bool>(false);
  command->add_flag("--dry-run", *dryRun, "Only show the changes");
  command->callback([&runner, dryRun] {
    runner = [dryRun](Session& session) {
      return *dryRun ? showPlans(session) : session.finish("gc", gc(session));
    };
  });
}

}  // namespace vfpass::commands
