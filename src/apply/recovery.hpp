#pragma once

#include <string>

#include "vfpass/apply/tools.hpp"

namespace vfpass::apply {

Plan planOf(const state::Operation& operation);

/// Whether it may have taken effect.
bool isBegun(const state::JournaledStep& step);

/// Completes or rolls back an operation whose writer is dead, and returns which of them in one
/// line. The caller holds the operation's writer lock and, if it has steps on a domain, the
/// domain's lock. Idempotent: after an Error the operation is still open, and its direction is that
/// in which this has begun.
std::string endOperation(const state::Operation& operation, Tools& tools);

/// Deletes the operation from the journal, and the lock file of its writer.
void finishOperation(const state::Operation& operation, Tools& tools);
void removeWriterLock(const state::Operation& operation, const Tools& tools);

}  // namespace vfpass::apply
