#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holder_gate.hpp"
#include "vfpass/apply/run.hpp"

namespace vfpass::apply {

Plan planOf(const state::Operation& operation);

/// Whether it has steps on a domain.
bool changesDomain(const state::Operation& operation);

/// Completes or rolls back an operation whose writer is dead, and returns which of them in one
/// line. The caller holds the operation's writer lock and, if it has steps on a domain, the
/// domain's lock. Idempotent: after an Error the operation is still open, and its direction is that
/// in which this has begun. Adds warnings for the user, also before an Error.
std::string endOperation(const state::Operation& operation, Tools& tools,
                         std::vector<std::string>& warnings);

/// The leases of the plan's domain, and those of others on the PFs and PCI functions that the plan
/// changes: what its steps can concern. Reading all leases for each of many operations would take
/// quadratic time.
std::vector<Lease> leasesNear(const Plan& plan, const Tools& tools);

/// Deletes the operation from the journal, and the lock file of its writer.
void finishOperation(std::int64_t operation, Tools& tools);
void removeWriterLock(std::int64_t operation, const Tools& tools);

/// The remedy against the cause of an interruption, followed by `vfpass recover` unless it ends
/// with that already.
std::string thenRecover(const std::string& remedy);

/// The part of an action on devices that exist (onExistingDevices()) and that no other domain has
/// leased; nullopt if nothing is left. While the plan's writer was dead, nobody held the locks of
/// its devices. The action may be a step or an inverse. Not for host plans, which also change VFs
/// that are leased and idle.
std::optional<Action> onOwnDevices(const Action& action, const Plan& plan, Tools& tools);

/// Performs one inverse of a plan's step after checking for holders. If somebody else now uses or
/// leases one of the VFs that the plan created, these stay, with a warning, and only the probing
/// state is restored. Throws Error if another device is held: the step then stays in the journal.
void rollBackAction(const Action& inverse, const Plan& plan, HolderGate& gate, Tools& tools,
                    std::vector<std::string>& warnings);

}  // namespace vfpass::apply
