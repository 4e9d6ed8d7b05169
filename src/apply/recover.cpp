#include "vfpass/apply/recover.hpp"

#include <algorithm>

#include "perform.hpp"
#include "recover_operation.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {
namespace {

using state::JournaledStep;
using state::Operation;
using state::StepStatus;

// Takes the lock of a dead writer, so that only one process recovers its operation. nullopt while
// the writer or another recovery of its operation lives: a writer holds its lock from before it
// first releases the PF locks until it ends.
std::optional<state::FileLock> takeOver(const Operation& operation, const Tools& tools) {
  const auto locks =
      state::lockPlan(tools.runDirectory, planOf(operation), tools.remainingTimeout());
  return state::FileLock::tryAcquire(state::writerLockFile(tools.runDirectory, operation.id));
}

// The same for an operation whose domain's lock the caller holds. Nobody lives who would keep the
// writer's lock: the kernel frees the locks of a process that ends one after another, and the hook
// takes it for an instant. Without waiting for it, a command would go on beside the unfinished
// operation of its own domain.
state::FileLock takeOverOfDomain(const Operation& operation, const Tools& tools) {
  return state::FileLock::acquire(state::writerLockFile(tools.runDirectory, operation.id),
                                  tools.remainingTimeout());
}

// An operation with steps on a domain excludes every other command on that domain: they release
// their PF locks while libvirt works. nullopt while another command holds the lock; it recovers the
// operation itself, or has found that it is not interrupted.
std::optional<std::vector<state::FileLock>> lockDomain(const Operation& operation,
                                                       const Tools& tools,
                                                       const std::optional<Uuid>& locked) {
  std::vector<state::FileLock> locks;
  if (operation.domain == locked || !changesDomain(operation)) {
    return locks;
  }
  auto lock =
      state::FileLock::tryAcquire(state::domainLockFile(tools.runDirectory, operation.domain));
  if (!lock) {
    return std::nullopt;
  }
  locks.push_back(std::move(*lock));
  return locks;
}

// Both locks of an operation whose writer is dead. nullopt while another command works on it.
std::optional<std::vector<state::FileLock>> lockOperation(const Operation& operation,
                                                          const Tools& tools,
                                                          const std::optional<Uuid>& locked) {
  auto locks = lockDomain(operation, tools, locked);
  if (operation.domain == locked && changesDomain(operation)) {
    locks->push_back(takeOverOfDomain(operation, tools));
    return locks;
  }
  auto writer = locks ? takeOver(operation, tools) : std::nullopt;
  if (!writer) {
    return std::nullopt;
  }
  locks->push_back(std::move(*writer));
  return locks;
}

UnrecoveredOperation unrecovered(const Operation& operation, const Error& error) {
  return {operation.domain, operation.domainName,
          describeWork(planOf(operation)) + " (operation " + std::to_string(operation.id) +
              "): " + error.what(),
          error.remedy(), error.code()};
}

void recoverOne(const Operation& found, Tools& tools, const std::optional<Uuid>& locked,
                Recovered& recovered) {
  const auto locks = lockOperation(found, tools, locked);
  if (!locks) {
    recovered.left.push_back(describeWork(planOf(found)) + " (operation " +
                             std::to_string(found.id) + ")");
    return;
  }
  // The writer may have finished it while this process waited for the locks.
  const auto open = tools.database.openOperation(found.id);
  if (!open) {
    removeWriterLock(found.id, tools);
    return;
  }
  try {
    requireSealKey(planOf(*open), tools);
    recovered.done.push_back(
        {open->domain, open->domainName, endOperation(*open, tools, recovered.warnings)});
  } catch (const Error& error) {
    recovered.unrecovered.push_back(unrecovered(*open, error));
  }
}

// What is left of a step whose outcome nobody looks for any more.
std::string leftBy(const JournaledStep& step) {
  const std::string what = describe(step.step.action);
  switch (step.status) {
    case StepStatus::done:
      return "done, and left as it is: " + what;
    case StepStatus::undone:
      return "taken back: " + what;
    case StepStatus::planned:
      return "not begun: " + what;
    case StepStatus::started:
    case StepStatus::undoing:
      break;
  }
  return "done, partly done or not done: " + what;
}

[[noreturn]] void throwWorkedOn(std::int64_t number, const std::string& work) {
  throw Error("operation " + std::to_string(number) + ": another vfpass command works on " + work,
              "wait until it has ended; `vfpass status` shows what is open", ExitCode::refused);
}

Abandoned abandonUnderstood(Tools& tools, std::int64_t number) {
  const auto found = tools.database.openOperation(number);
  const auto locks = found ? lockOperation(*found, tools, std::nullopt) : std::nullopt;
  const auto open = locks ? tools.database.openOperation(number) : std::nullopt;
  if (!open) {
    throwWorkedOn(number, found ? describeWork(planOf(*found)) : "it");
  }
  Abandoned abandoned{open->domain, open->domainName, describeWork(planOf(*open)), {}};
  for (const JournaledStep& step : open->steps) {
    abandoned.left.push_back(leftBy(step));
  }
  finishOperation(number, tools);
  return abandoned;
}

// Its PFs are not known. A living command would hold one of these locks.
Abandoned abandonUnknown(Tools& tools, std::int64_t number, const state::OperationOwner& owner) {
  const auto domain =
      state::FileLock::tryAcquire(state::domainLockFile(tools.runDirectory, owner.domain));
  const auto writer =
      domain ? state::FileLock::tryAcquire(state::writerLockFile(tools.runDirectory, number))
             : std::nullopt;
  if (!writer || !tools.database.ownerOfOperation(number)) {
    throwWorkedOn(number, "it");
  }
  finishOperation(number, tools);
  return {owner.domain,
          owner.domainName,
          "operation " + std::to_string(number) +
              (owner.domainName.empty() ? "" : " on domain " + printable(owner.domainName)),
          {"its steps are not understood; what they have done is left as it is"}};
}

}  // namespace

Recovered recover(Tools& tools, const std::optional<Uuid>& domain,
                  const std::optional<Uuid>& locked) {
  Recovered recovered;
  for (const auto& operation :
       domain ? tools.database.openOperationsOf(*domain) : tools.database.openOperations()) {
    const bool possible = tools.hypervisor != nullptr || !changesDomain(operation);
    if (!possible) {
      continue;
    }
    try {
      tools.checkpoint();
    } catch (const Cancelled& stop) {
      recovered.stopped = stop;
      break;
    }
    recoverOne(operation, tools, locked, recovered);
  }
  return recovered;
}

Abandoned abandon(Tools& tools, std::int64_t number) {
  const auto owner = tools.database.ownerOfOperation(number);
  if (!owner) {
    throw Error("operation " + std::to_string(number) + " is not open",
                "`vfpass recover` names the operations that it cannot complete or roll back",
                ExitCode::badInput);
  }
  try {
    return abandonUnderstood(tools, number);
  } catch (const state::UnknownOperation&) {
    return abandonUnknown(tools, number, *owner);
  }
}

void throwUnrecovered(const std::vector<UnrecoveredOperation>& unrecovered) {
  if (unrecovered.empty()) {
    return;
  }
  std::vector<std::string> lines;
  for (const auto& work : unrecovered) {
    lines.push_back(work.line);
  }
  const bool refused = std::ranges::all_of(
      unrecovered, [](const UnrecoveredOperation& work) { return work.code == ExitCode::refused; });
  const std::string& remedy = unrecovered.front().remedy;
  throw Error("could not complete an interrupted operation: " + join(lines, "; "),
              thenRecover(remedy.empty() ? "fix the cause" : remedy),
              refused ? ExitCode::refused : ExitCode::failed);
}

}  // namespace vfpass::apply
