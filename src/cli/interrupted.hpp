#pragma once

#include "subject.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {

/// What every changing command does first: ends work that a killed process left, and rebuilds
/// leases of a database that was lost. Says what it did. Work that cannot be ended stops the
/// command only if it is about `domain` (nullopt: any); of others it warns.
void settleInterruptedWork(Session& session, const DomainSurvey& survey,
                           const std::optional<Uuid>& domain);

/// Serialises attach and detach of one domain. The hook never takes this lock, so it may be held
/// across libvirt calls.
state::FileLock lockDomain(Session& session, const Uuid& domain);

}  // namespace vfpass::cli
