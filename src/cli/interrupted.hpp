#pragma once

#include "subject.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::cli {

/// What every changing command does first: ends work that a killed process left, and rebuilds
/// leases of a database that was lost. Says what it did.
void settleInterruptedWork(Session& session, const DomainSurvey& survey);

/// Serialises attach and detach of one domain. The hook never takes this lock, so it may be held
/// across libvirt calls.
state::FileLock lockDomain(Session& session, const Uuid& domain);

}  // namespace vfpass::cli
