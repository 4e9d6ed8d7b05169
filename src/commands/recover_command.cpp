#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "commands.hpp"
#include "interrupted_work.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/apply/device_owner.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/plan_hook.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::commands {
namespace {

// Domains that stopped without libvirt calling release: a killed daemon, a power failure.
std::set<Uuid> domainsWithoutRelease(Session& session, const commands::DomainSurvey& survey) {
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

// The leases whose devices the guest may have left data in: another process may just be giving
// others back to the host or leaving them with the domain, or have died while it did.
std::vector<Lease> givenToGuest(Session& session, std::vector<Lease> leases) {
  if (leases.empty()) {
    return leases;
  }
  const auto open = session.database().openOperationsOf(leases.front().domain);
  std::erase_if(leases, [&](const Lease& lease) {
    return lease.state == LeaseState::reserved || apply::isDomains(lease, open) ||
           apply::isHosts(lease, open);
  });
  return leases;
}

// Returns the domain's name, or nullopt if the domain has started in the meantime, or has no device
// of which that is known.
std::optional<std::string> releaseStopped(Session& session, const commands::DomainSurvey& survey,
                                          const Uuid& domain) {
  if (!stillStopped(session, domain)) {
    return std::nullopt;
  }
  const auto before = session.database().leasesOf(domain);
  if (before.empty()) {  // a detach has ended them in the meantime
    return std::nullopt;
  }
  std::vector<PciAddress> pfs;
  for (const auto& lease : before) {
    pfs.push_back(lease.pf);
  }
  session.operations().begin(events::Operation::release);
  session.operations().setDomain(domain, before.front().domainName);
  session.operations().addDevices(before);
  auto locks = state::lockPfs(session.options().runDirectory, pfs, session.tools().lockTimeout);
  // A start between the query to libvirt and the lock has changed the leases.
  if (session.database().leasesOf(domain) != before) {
    return std::nullopt;
  }
  const std::string name = before.front().domainName;
  const auto guests = givenToGuest(session, before);
  if (guests.empty()) {
    return std::nullopt;
  }
  Inventory inventory = session.inventory(plan::namedFunctions(before), pfs);
  session.addHolders(inventory, pfs);
  const auto plan = plan::planRelease(domain, name, guests, inventory, session.kernel().bootId());
  plan::throwObjections("cannot scrub the devices of domain " + printable(name),
                        plan::objectToActiveClaims(plan, inventory, survey.summaries));
  apply::Tools tools = session.tools();
  session.run(plan, tools, std::move(locks));
  return name;
}

void releaseAndReport(Session& session, const commands::DomainSurvey& survey, const Uuid& domain) {
  if (const auto name = releaseStopped(session, survey, domain)) {
    const std::string result =
        "scrubbed the devices of domain " + printable(*name) + ", which stopped without a release";
    session.operations().done(result);
    session.note(result);
  }
}

// The hook's `started` has 10 seconds to record that the guest runs, on a host of any load. libvirt
// calls `release` if such a start fails after all.
void recordStarts(Session& session, const commands::DomainSurvey& survey) {
  for (const auto& lease : session.database().leases()) {
    const bool active = std::ranges::find(survey.active, lease.domain) != survey.active.end();
    if (lease.state == LeaseState::starting && active &&
        session.database().setLeaseState(lease.domain, lease.entry, lease.generation,
                                         LeaseState::running, session.kernel().bootId())) {
      session.note("lease " + lease.entry + " of domain " + printable(lease.domainName) +
                   ": the domain runs, which the hook had no time to record");
    }
  }
}

ExitCode abandon(Session& session, std::int64_t operation) {
  session.requireDomainChangesPossible("recover");
  session.acceptUnknownOperations();
  apply::Tools tools = session.tools();
  const auto abandoned = apply::abandon(tools, operation);
  const std::string result = "abandoned the " + abandoned.work + "; nothing else was changed";
  session.operations().record(events::Operation::recover, abandoned.domain, abandoned.domainName,
                              {events::Result::done, result});
  session.note(result);
  for (const std::string& line : abandoned.left) {
    session.note("  " + line);
  }
  session.note(
      "check its devices with `vfpass status` and `vfpass vf list`; attach or detach the VM again, "
      "or release leases that no domain uses with `vfpass gc`");
  return ExitCode::done;
}

ExitCode recover(Session& session) {
  session.requireDomainChangesPossible("recover");
  const commands::DomainSurvey survey = surveyDomains(session);
  const auto unrecovered = recoverInterruptedWork(session, survey);
  recordStarts(session, survey);
  ExitCode code = ExitCode::done;
  for (const auto& domain : domainsWithoutRelease(session, survey)) {
    const bool interrupted =
        std::ranges::find(unrecovered, domain, &apply::UnrecoveredOperation::domain) !=
        unrecovered.end();
    try {
      if (!interrupted) {
        releaseAndReport(session, survey, domain);
      }
    } catch (const Error& error) {  // does not stop the release of the other domains
      code = session.fail(error);
    }
  }
  apply::throwUnrecovered(unrecovered);
  if (session.hasDoneNothing()) {
    session.note("nothing to do: no operation was interrupted");
  }
  return code;
}

// CLI::PositiveNumber describes the limits of a double.
std::string faultOfOperationNumber(const std::string& text) {
  const auto number = parseNumber(text);
  const bool isPossible =
      number && *number > 0 && *number <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  return isPossible ? "" : text + " is not the number of an operation";
}

}  // namespace

void addRecover(CLI::App& app, Runner& runner) {
  auto* command = app.add_subcommand(
      "recover",
      "Complete or roll back operations that a killed process or a power failure interrupted.\n"
      "Running it again changes nothing.");
  const auto operation = std::make_shared<std::int64_t>(0);
  command
      ->add_option("--abandon", *operation,
                   "Forget this operation, which recover cannot end and names by its number, and\n"
                   "say what it leaves; change nothing else")
      ->type_name("NUMBER")
      ->check(faultOfOperationNumber);
  command->callback([&runner, operation] {
    runner = [operation](Session& session) {
      return session.finish("recover",
                            *operation == 0 ? recover(session) : abandon(session, *operation));
    };
  });
}

}  // namespace vfpass::commands
