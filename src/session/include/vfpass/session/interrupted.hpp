#pragma once

#include "vfpass/apply/recover.hpp"
#include "vfpass/session/operation_log.hpp"
#include "vfpass/session/subject.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::session {

/// The first step of every command that changes something: recovers the operations of killed
/// processes, rebuilds the leases of a lost database, and reports both. Throws if an operation on
/// `domain` cannot be recovered; warns about those on other domains.
void recoverInterruptedWork(Session& session, const DomainSurvey& survey, const Uuid& domain);

/// The same for commands on all domains. Returns the operations that cannot be recovered: the
/// command leaves their domains alone and fails at its end.
std::vector<apply::UnrecoveredOperation> recoverInterruptedWork(Session& session,
                                                                const DomainSurvey& survey);

/// One entry for each operation that was interrupted, also if it is still open.
void recordRecovery(OperationLog& log, const apply::Recovered& recovered);

/// Serialises attach and detach of one domain. The hook never takes this lock, so it may be held
/// across libvirt calls.
state::FileLock lockDomain(Session& session, const Uuid& domain);

}  // namespace vfpass::session
