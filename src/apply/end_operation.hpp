#pragma once

#include <cstdint>
#include <string>

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

Plan planOf(const state::Operation& operation);

/// Whether it has steps on a domain.
bool changesDomain(const state::Operation& operation);

/// Completes or rolls back an operation whose writer is dead, and returns which of them in one
/// line. The caller holds the operation's writer lock and, if it has steps on a domain, the
/// domain's lock. Idempotent: after an Error the operation is still open, and its direction is that
/// in which this has begun.
std::string endOperation(const state::Operation& operation, Tools& tools);

/// Deletes the operation from the journal, and the lock file of its writer.
void finishOperation(std::int64_t operation, Tools& tools);
void removeWriterLock(std::int64_t operation, const Tools& tools);

/// The remedy against the cause of an interruption, followed by `vfpass recover` unless it ends
/// with that already.
std::string thenRecover(const std::string& remedy);

}  // namespace vfpass::apply
