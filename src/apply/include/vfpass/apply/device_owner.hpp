#pragma once

#include <vector>

#include "vfpass/apply/run.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {

// Who has the devices of an operation that is unfinished or was interrupted: a domain start or
// another command may have taken them while no lock was held or no process worked on it.

/// Whether the device of a lease is the host's although the lease has not ended: an unfinished
/// attach has not plugged it into the running domain yet, or has taken it back, or an unfinished
/// detach has begun to give it back. It must not get neutral values: only that operation knows its
/// attributes, and does not set them again where it has set them. `open`:
/// Database::openOperations().
bool isHosts(const Lease& lease, const std::vector<state::Operation>& open);

/// Whether an unfinished attach takes the device over from its domain, or an unfinished detach
/// leaves it with its domain. It must not get neutral values when the guest stops: the start that
/// follows the end of that operation may be one without a lease, and so without anybody who sets
/// the attributes again. `open`: Database::openOperations().
bool isDomains(const Lease& lease, const std::vector<state::Operation>& open);

/// Whether an unfinished attach has yet to plug the device of a lease into the running domain, so
/// that no guest has had it. `open`: Database::openOperations().
bool isYetToBePlugged(const Lease& lease, const std::vector<state::Operation>& open);

/// Records in the journal that a domain starts with the leases that `prepare` records: the run of
/// its guest for which an open attach recorded them as running has ended, and from now on they
/// count there as reserved. Otherwise nobody could tell later whether the guest that has the
/// devices got them from that attach or from this start. Does nothing for other plans.
void recordLaterRun(const Plan& prepare, Tools& tools);

/// Whether the run of the guest has ended into which an open attach plugs devices: a lease of
/// theirs was returned since (the release of the hook), or recordLaterRun(). Then there is nothing
/// to plug or to unplug, whatever runs now.
bool isRunOver(const state::Operation& operation, const Tools& tools);

/// True while the database still holds the leases as the first `done` steps recorded them. False: a
/// domain start (the prepare of the hook) or another command has taken them over, and the host
/// steps of this plan must neither continue nor be rolled back.
bool leasesAreOurs(const Plan& plan, std::size_t done, const Tools& tools);

/// The leases that an interrupted prepare or release would return to reserved and whose devices are
/// the host's by now: the lease has ended, or isHosts(). Empty for other plans.
std::vector<Lease> returnedSince(const Plan& plan, const Tools& tools);

/// True for an interrupted `host apply` if a VM has started on its VFs since (prepare does not need
/// the host settings to be recovered). Nobody may roll back the rest of it then.
bool isOvertaken(const Plan& plan, Tools& tools);

/// Takes the PF locks for a domain that is about to start, at a time when no living process has an
/// open operation with a step on that domain: such a process releases its locks while libvirt
/// changes the XML, and that change may be waiting for this very start. Waits up to `timeout` for
/// such an operation, then throws Error (ExitCode::refused), so that libvirt aborts the start and
/// the other process continues. Operations of dead writers are left to recover().
std::vector<state::FileLock> lockForStart(Tools& tools, const Uuid& domain,
                                          const std::vector<PciAddress>& pfs,
                                          std::chrono::milliseconds timeout);

}  // namespace vfpass::apply
