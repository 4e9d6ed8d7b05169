#include "vfpass/apply/recover.hpp"

#include <algorithm>
#include <set>

#include "commands.hpp"
#include "interrupted.hpp"
#include "subject.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/active_claims.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/plan/hook.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {
namespace {

// Domains whose guest went away without libvirt calling release: a killed daemon, a power cut.
std::set<Uuid> domainsWithoutRelease(Session& session, const DomainSurvey& survey) {
  std::set<Uuid> stopped;
  for (const auto& lease : session.database().leases()) {
    const bool active =
        std::find(survey.active.begin(), survey.active.end(), lease.domain) != survey.active.end();
    if (lease.state != LeaseState::reserved && !active) {
      stopped.insert(lease.domain);
    }
  }
  return stopped;
}

bool stillStopped(Session& session, const Uuid& domain) {
  const auto found = session.hypervisor().findDomain(toString(domain));
  return !found || !found->active;
}

// Returns the domain's name, or nothing when a start came in between.
std::optional<std::string> scrub(Session& session, const DomainSurvey& survey, const Uuid& domain) {
  if (!stillStopped(session, domain)) {
    return std::nullopt;
  }
  const auto before = leasesOf(session.database().leases(), domain);
  std::vector<PciAddress> pfs;
  for (const auto& lease : before) {
    pfs.push_back(lease.pf);
  }
  auto locks = state::lockPfs(session.options().runDirectory, pfs, session.tools().lockPatience);
  // A start between the question to libvirt and the lock shows as a changed lease.
  const auto leases = session.database().leases();
  if (leases.empty() || leasesOf(leases, domain) != before) {
    return std::nullopt;
  }
  const std::string name = before.front().domainName;
  Inventory inventory = session.inventory(plan::namedFunctions(before));
  session.addHolders(inventory, pfs);
  const auto plan = plan::planRelease(domain, name, leases, inventory, session.kernel().bootId());
  plan::throwObjections("cannot scrub the devices of domain " + printable(name),
                        plan::objectToActiveClaims(plan, inventory, survey.summaries));
  apply::Tools tools = session.tools();
  for (const auto& warning : apply::run(plan, tools, std::move(locks))) {
    session.verbose(warning);
  }
  return name;
}

ExitCode recover(Session& session) {
  session.requireDomainChangesPossible("recover");
  const DomainSurvey survey = surveyDomains(session);
  settleInterruptedWork(session, survey, std::nullopt);
  for (const auto& domain : domainsWithoutRelease(session, survey)) {
    if (const auto name = scrub(session, survey, domain)) {
      session.note("devices of domain " + printable(*name) +
                   ", which stopped without a release: scrubbed");
    }
  }
  return ExitCode::done;
}

}  // namespace

void addRecover(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "recover",
      "finish or undo what a killed process or a power cut left; doing it again changes\n"
      "nothing");
  command->callback([&runner] { runner = recover; });
}

}  // namespace vfpass::cli
