#include "interrupted_work.hpp"

#include "vfpass/apply/adopt_leases.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/base/own_process.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::commands {
namespace {

// One entry for each operation that was interrupted, also if it is still open.
void recordRecovery(OperationLog& log, const apply::Recovered& recovered) {
  for (const auto& work : recovered.done) {
    log.record(events::Operation::recover, work.domain, work.domainName,
               {events::Result::done, work.line});
  }
  for (const auto& work : recovered.unrecovered) {
    const bool refused = work.code == ExitCode::refused;
    log.record(
        events::Operation::recover, work.domain, work.domainName,
        {refused ? events::Result::refused : events::Result::failed, work.line, work.remedy});
  }
}

}  // namespace

apply::Recovered reportedRecovery(Session& session, apply::Tools& tools,
                                  const std::optional<Uuid>& domain,
                                  const std::optional<Uuid>& locked) {
  const StopSignals stop;
  const report::ProgressTicker ticker(session.progress());
  auto recovered = apply::recover(tools, domain, locked);
  recordRecovery(session.operations(), recovered);
  for (const auto& work : recovered.done) {
    session.note(work.line);
  }
  for (const auto& warning : recovered.warnings) {
    session.warn(warning);
  }
  for (const auto& work : recovered.left) {
    const std::string line = "another vfpass command works on " + work;
    locked ? session.verbose(line) : session.note(line);
  }
  if (recovered.stopped) {
    throw Cancelled(*recovered.stopped);
  }
  StopSignals::throwIfAsked();
  return recovered;
}

std::vector<apply::UnrecoveredOperation> recoverInterruptedWork(Session& session,
                                                                const DomainSurvey& survey,
                                                                const std::optional<Uuid>& locked) {
  apply::Tools tools = session.tools();
  const auto recovered = reportedRecovery(session, tools, std::nullopt, locked);
  const auto adoption = apply::adoptLeases(tools.database, tools.kernel, tools.sealKey,
                                           survey.managed, survey.active);
  for (const auto& line : adoption.adopted) {
    session.note(line);
  }
  for (const auto& refused : adoption.refused) {  // `vfpass status` shows these
    session.verbose("domain " + printable(refused.domainName) + ": " + refused.reason);
  }
  auto unrecovered = recovered.unrecovered;
  for (const auto& refused : adoption.refused) {
    if (refused.unread) {
      unrecovered.push_back({refused.domain, refused.domainName,
                             "domain " + printable(refused.domainName) + ": " + refused.reason,
                             ""});
    }
  }
  return unrecovered;
}

DomainSurvey recoverInterruptedWork(Session& session, const Uuid& domain) {
  DomainSurvey survey = surveyDomains(session);
  const bool interrupted = !session.database().openOperations().empty();
  std::vector<apply::UnrecoveredOperation> own;
  for (const auto& work : recoverInterruptedWork(session, survey, domain)) {
    if (work.domain == domain) {
      own.push_back(work);
    } else {
      session.warn("could not complete an interrupted operation: " + work.line);
    }
  }
  apply::throwUnrecovered(own);
  return interrupted ? surveyDomains(session) : survey;
}

state::FileLock lockDomain(Session& session, const Uuid& domain, const std::string& name) {
  const auto waits = session.showLockWaits("VM " + name);
  return state::FileLock::acquire(state::domainLockFile(session.options().runDirectory, domain),
                                  session.tools().lockTimeout);
}

}  // namespace vfpass::commands
