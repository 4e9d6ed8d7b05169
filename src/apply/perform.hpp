#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "device_records.hpp"
#include "vfpass/apply/run.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::apply {

/// Performs one action; idempotent. Appends messages for the user to `warnings`.
void perform(const Action& action, Tools& tools, std::vector<std::string>& warnings);

/// The same for the inverse of a step: an attribute that the device fails to take and that does not
/// read back as stated is an Error, even if it is optional.
void performInverse(const Action& action, Tools& tools, std::vector<std::string>& warnings);

/// Resets several functions in parallel.
void performResets(const std::vector<ResetFunction>& resets, Tools& tools);

/// Records a lease of a plan whose usesToBegin() are known.
void performRecord(const RecordLease& record, NewUses& uses, Tools& tools);

/// Ends several leases in one transaction.
void performDrops(const std::vector<DropLease>& drops, Tools& tools);

/// Binds several functions. The result has, in the same order, null or the exception that perform()
/// would have thrown.
std::vector<std::exception_ptr> performBindings(const std::vector<BindDriver>& bindings,
                                                Tools& tools);

/// The part of an action whose devices still exist; nullopt if none of them does. The operation
/// itself, or somebody since then, may have removed VFs: for those nothing is left to do, and the
/// others of the same PF must not suffer for it.
std::optional<Action> onExistingDevices(const Action& action, const Tools& tools);

/// True if the domain's persistent XML is as the action requires.
bool isInEffect(const EditDomain& action, Tools& tools);

/// Waits until the definition that a plan has changed would survive a power failure. For one that
/// another process has changed: perform() does it itself.
void syncDefinition(const Plan& plan, Tools& tools);

// step_kinds.cpp: the kinds of steps of a plan.

/// True for actions on the running domain.
bool isLiveAction(const Action& action);

/// True for actions performed by libvirt: we must hold no lock during them.
bool isDomainAction(const Action& action);

/// True for actions whose effect a reboot reverts.
bool isKernelAction(const Action& action);

/// True for actions that only change the state database.
bool isRecord(const Action& action);

/// Makes the host's seal key if it has none and a step or inverse of the plan writes leases into
/// a domain. Called before the first step, so that nothing has to be rolled back if it fails. Other
/// plans work without a key, and where /etc/vfpass is read-only (a systemd unit with
/// ProtectSystem=strict).
void requireSealKey(const Plan& plan, const Tools& tools);

/// End of the batch of steps that are journaled together. A step on a domain is a batch of its own
/// because no lock is held during it; so is creating VFs, because its inverse must not run unless
/// it began.
std::size_t batchEnd(const std::vector<Step>& steps, std::size_t first);

/// The first of the steps that return devices to the host, or of all steps of a detach. An attach
/// that drops an entry does so after its last step on the domain.
std::size_t restorationBegin(const Plan& plan);

}  // namespace vfpass::apply
