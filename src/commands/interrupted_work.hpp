#pragma once

#include "operation_log.hpp"
#include "subject.hpp"
#include "survey_domains.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::commands {

/// The first step of every command that changes something: recovers the operations of killed
/// processes, rebuilds the leases of a lost database, and reports both. Returns the operations that
/// cannot be recovered: the command leaves their domains alone and fails at its end. `locked`: the
/// domain whose lock the caller holds (lockDomain()); work on the domain of another command that
/// holds its lock is left to that command.
std::vector<apply::UnrecoveredOperation> recoverInterruptedWork(
    Session& session, const DomainSurvey& survey, const std::optional<Uuid>& locked = std::nullopt);

/// The same for a command on one domain, whose lock it holds. Throws if an operation on that domain
/// cannot be recovered; warns about those on other domains. Returns what libvirt has afterwards.
DomainSurvey recoverInterruptedWork(Session& session, const Uuid& domain);

/// apply::recover(), whose result is reported and recorded in the journal. A signal ends it after
/// the operation that it is working on: throws Cancelled.
apply::Recovered reportedRecovery(Session& session, apply::Tools& tools,
                                  const std::optional<Uuid>& domain,
                                  const std::optional<Uuid>& locked);

/// Serialises attach, detach, gc and recovery of one domain. The hook never takes this lock, so it
/// may be held across libvirt calls. On a terminal the wait for it names the domain.
state::FileLock lockDomain(Session& session, const Uuid& domain, const std::string& name);

}  // namespace vfpass::commands
