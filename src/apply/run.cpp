#include "vfpass/apply/run.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <set>

#include "created_vfs.hpp"
#include "holder_gate.hpp"
#include "perform.hpp"
#include "recover_operation.hpp"
#include "vfpass/apply/device_owner.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::apply {
namespace {

// How many bindings are begun together, so that a check for holders is recent for each of them.
constexpr std::size_t maxBindingsTogether = 16;

// The exception to report: a timeout takes precedence, because the operation must then stay open.
std::exception_ptr worstOf(const std::vector<std::exception_ptr>& failures) {
  std::exception_ptr worst;
  for (const auto& failure : failures) {
    try {
      if (failure) {
        std::rethrow_exception(failure);
      }
    } catch (const TimeoutError&) {
      return failure;
    } catch (const Error&) {
      worst = worst ? worst : failure;
    }
  }
  return worst;
}

// A step that failed may have taken effect all the same: the connection to libvirt broke before
// the reply, or the driver refused the second of two attributes. Its inverse reads first what there
// is. That of a creation of VFs does not: others may have created VFs since, so it must not run
// unless some are left (CreationLeft).
bool mayHaveBegun(const Action& action) { return !std::holds_alternative<CreateVfs>(action); }

// How long a check for holders remains valid within a batch.
constexpr std::chrono::milliseconds holderCheckLifetime{1000};

// A domain start or another command has taken over the plan's leases while no lock was held.
class TakenOver : public Error {
 public:
  using Error::Error;
};

// Not an Error: rollBack() alone handles it.
struct FailedInverse {
  Action action;
  std::exception_ptr cause;
};

// Changes only records, and reads nothing of the host, which could keep the database locked.
bool isQuick(const Step& step) {
  const auto* drop = std::get_if<DropLease>(&step.action);
  return isRecord(step.action) && (drop == nullptr || !drop->handedOver);
}

class Run {
 public:
  Run(const Plan& plan, Tools& tools, std::vector<state::FileLock> locks)
      : plan_(plan), tools_(tools), gate_(plan_, tools), locks_(std::move(locks)) {}

  std::vector<std::string> execute() {
    uses_ = usesToBegin(plan_, tools_);
    // A start that finds its devices as it needs them only changes leases: one transaction does not
    // need the journal, whose four transactions wait for the disk.
    if (std::ranges::all_of(plan_.steps, isQuick)) {
      tools_.database.together([this] {
        recordLaterRun(plan_, tools_);
        for (const Step& step : plan_.steps) {
          performStep(step.action);
        }
      });
      return warnings_;
    }
    plan::throwObjections(describeWork(plan_) + " refused", gate_.objectionsToPlan());
    // Journal the whole plan before its first step.
    begin();
    // Taken while the PF locks are held: whoever holds those and can take this one knows that the
    // writer has died.
    writer_.push_back(state::FileLock::acquire(
        state::writerLockFile(tools_.runDirectory, operation_), tools_.remainingTimeout()));
    // Run the steps. A failure rolls them back, except where the outcome of a step is unknown or
    // the leases are no longer the plan's.
    try {
      while (done_ < plan_.steps.size()) {
        runBatch(done_, batchEnd(plan_.steps, done_));
      }
    } catch (const TimeoutError&) {
      leaveOpen();
      throw;
    } catch (const TakenOver& error) {
      yield(error);
    } catch (const Cancelled& stop) {
      this->stop(stop);
    } catch (const CreationLeft& error) {
      begun_ = true;
      fail(error);
    } catch (const Error& error) {
      fail(error);
    } catch (const std::exception& error) {  // no memory, or no thread
      fail(Error(error.what(), "free memory or processes, then run the command again"));
    }
    finish();
    return warnings_;
  }

 private:
  // The leases that come first are recorded in the same transaction, so that no device is without
  // an owner while its operation is open. Another domain's lease of a device ends this with nothing
  // begun.
  void begin() {
    tools_.database.together([this] {
      recordLaterRun(plan_, tools_);
      operation_ = tools_.database.beginOperation(plan_, tools_.kernel.bootId());
      for (; done_ < plan_.steps.size() &&
             std::holds_alternative<RecordLease>(plan_.steps[done_].action);
           ++done_) {
        performStep(plan_.steps[done_].action);
      }
      if (done_ > 0) {
        tools_.database.markSteps(operation_, 0, done_, state::StepStatus::done);
      }
    });
  }

  void performStep(const Action& action) {
    if (const auto* record = std::get_if<RecordLease>(&action)) {
      performRecord(*record, uses_, tools_);
    } else {
      perform(action, tools_, warnings_);
    }
  }

  void runBatch(std::size_t first, std::size_t end) {
    // libvirt's steps run without locks; all others under them, on devices that nobody else holds.
    if (isDomainAction(plan_.steps[first].action)) {
      locks_.clear();
    } else {
      const bool wasUnlocked = locks_.empty() && done_ > 0;
      if (wasUnlocked) {
        definitions_ = definitionsFor(plan_, tools_, warnings_);
      }
      takeLocks();
      if (wasUnlocked) {
        requireUnnamedVfs(plan_, definitions_, tools_);
        addRemovals();
      }
      requireUnheld(first, end);
    }
    tools_.database.markSteps(operation_, first, end - first, state::StepStatus::started);
    // Neighbouring resets and bindings run together, everything else one by one: a function-level
    // reset takes at least 100 ms by the PCI specification.
    for (std::size_t at = first; at < end; at = done_) {
      if (isReversible()) {
        tools_.checkpoint();
      }
      requireRecentCheck(at, end);
      if (const auto resets = neighbours<ResetFunction>(at, end); resets.size() > 1) {
        performResets(resets, tools_);
        done_ = at + resets.size();
        continue;
      }
      if (const auto drops = neighbours<DropLease>(at, end); drops.size() > 1) {
        performDrops(drops, tools_);
        done_ = at + drops.size();
        continue;
      }
      if (const auto bindings = neighbours<BindDriver>(at, end, maxBindingsTogether);
          bindings.size() > 1) {
        bindTogether(at, bindings);
        continue;
      }
      begun_ = mayHaveBegun(plan_.steps[at].action);
      performStep(plan_.steps[at].action);
      begun_ = false;
      done_ = at + 1;
      if (const auto* created = std::get_if<CreateVfs>(&plan_.steps[at].action)) {
        requireCreatedVfs(*created, plan_, tools_);
      }
    }
    tools_.database.markSteps(operation_, first, end - first, state::StepStatus::done);
  }

  // The actions of this kind from `at` on, until one of another kind.
  template <typename Kind>
  [[nodiscard]] std::vector<Kind> neighbours(std::size_t at, std::size_t end,
                                             std::size_t most = SIZE_MAX) const {
    std::vector<Kind> found;
    for (; at < end && found.size() < most && std::holds_alternative<Kind>(plan_.steps[at].action);
         ++at) {
      found.push_back(std::get<Kind>(plan_.steps[at].action));
    }
    return found;
  }

  void bindTogether(std::size_t at, const std::vector<BindDriver>& bindings) {
    std::vector<std::exception_ptr> failures;
    try {
      failures = performBindings(bindings, tools_);
    } catch (const std::exception&) {  // without an answer for each, each may have taken effect
      failures.assign(bindings.size(), std::current_exception());
    }
    for (std::size_t i = 0; i < failures.size(); ++i) {
      if (failures[i]) {
        failed_.insert(at + i);
      }
    }
    done_ = at + bindings.size();
    if (const auto worst = worstOf(failures)) {
      std::rethrow_exception(worst);
    }
  }

  void requireUnheld(std::size_t first, std::size_t end) {
    std::vector<Action> actions;
    for (std::size_t at = first; at < end; ++at) {
      actions.push_back(plan_.steps[at].action);
    }
    gate_.require(actions);
    checked_ = std::chrono::steady_clock::now();
  }

  void requireRecentCheck(std::size_t at, std::size_t end) {
    if (isKernelAction(plan_.steps[at].action) &&
        std::chrono::steady_clock::now() - checked_ > holderCheckLifetime) {
      requireUnheld(at, end);
    }
  }

  void takeLocks() {
    const auto pfs = lockedPfs(plan_);
    if (!locks_.empty() || pfs.empty()) {
      return;
    }
    locks_ = state::lockPlan(tools_.runDirectory, plan_, tools_.remainingTimeout());
    if (done_ > 0 && !leasesAreOurs(plan_, done_, tools_)) {
      throw TakenOver("domain " + printable(plan_.domainName) +
                      " was started, or another command changed its leases, while libvirt was "
                      "changing its XML");
    }
  }

  void addRemovals() {
    const auto removals = findUnusedVfs(plan_, definitions_, tools_, warnings_);
    if (!removals.empty()) {
      tools_.database.appendSteps(operation_, removals);
      plan_.steps.insert(plan_.steps.end(), removals.begin(), removals.end());
    }
  }

  // The outcome of the step is unknown: it and its leases stay in the journal until recover()
  // resolves it. Roll back other devices now as far as possible.
  void leaveOpen() {
    if (!isReversible() || changesDomain() || plan_.kind == PlanKind::host) {
      return;  // all steps of a host plan concern one PF, which is still busy in the kernel
    }
    try {
      turnBack();
    } catch (const Error& error) {
      warnings_.emplace_back(error.what());
      return;
    }
    for (std::size_t at = done_; at-- > 0;) {
      if (isKernelAction(plan_.steps[at].action) && !failed_.contains(at)) {
        rollBackStepIfPossible(at);
      }
    }
  }

  void rollBackStepIfPossible(std::size_t at) {
    try {
      for (const auto& action : plan_.steps[at].undo) {
        if (const auto possible = onOwnDevices(action, plan_, tools_)) {
          rollBackAction(*possible, plan_, gate_, tools_, warnings_);
        }
      }
      tools_.database.markSteps(operation_, at, 1, state::StepStatus::undone);
    } catch (const Error& error) {
      warnings_.emplace_back(error.what());  // recover() retries
    }
  }

  // Leases that were taken over belong to the domain start: do not touch their devices. A detach
  // restores the XML that the start has read; an attach has nothing to roll back in a guest that
  // runs with the attached devices.
  [[noreturn]] void yield(const TakenOver& error) {
    const bool rollsBack = plan_.kind == PlanKind::detach;
    if (rollsBack) {
      try {
        turnBack();
        rollBackXml();
      } catch (const Error& second) {
        throwRollbackFailed(error, second);
      }
    }
    finish();
    throw Error(std::string(error.what()) + (rollsBack ? "; the detach was rolled back" : ""),
                "check `vfpass status`, then run the command again", ExitCode::refused);
  }

  void rollBackXml() {
    locks_.clear();
    for (std::size_t at = done_; at-- > 0;) {
      for (const auto& action : plan_.steps[at].undo) {
        if (isDomainAction(action)) {
          performInverse(action, tools_, warnings_);
        }
      }
    }
  }

  [[noreturn]] static void throwRollbackFailed(const Error& error, const Error& second) {
    throw Error(std::string(error.what()) + "; rolling back failed: " + second.what(),
                thenRecover(second.remedy().empty() ? "fix the cause" : second.remedy()),
                error.code());
  }

  [[noreturn]] void fail(const Error& error) {
    undo(error);
    throw Error(error.what(), error.remedy(), error.code());
  }

  [[noreturn]] void stop(const Cancelled& stop) {
    undo(Error(stop.what(), ""));
    throw Cancelled(stop.signal(),
                    std::string(stop.what()) + ": " + describeWork(plan_) + " was rolled back");
  }

  // Throws if that is not possible, because of `error`.
  void undo(const Error& error) {
    if (!isReversible()) {
      throw Error(std::string(error.what()) + " (" +
                      std::to_string(plan_.steps.size() - done_ + failed_.size()) + " of " +
                      std::to_string(plan_.steps.size()) + " steps are left)",
                  thenRecover(error.remedy()), error.code());
    }
    try {
      turnBack();
      rollBack();
      finish();
    } catch (const Error& second) {
      throwRollbackFailed(error, second);
    }
  }

  // The steps that have or may have taken effect.
  [[nodiscard]] std::size_t begunEnd() const { return done_ + (begun_ ? 1 : 0); }

  // Once an attach or a detach has restored a device that its domain loses, it only goes forward:
  // some of these steps have no inverse.
  [[nodiscard]] bool isReversible() const {
    for (std::size_t at = restorationBegin(plan_); at < done_; ++at) {
      if (!failed_.contains(at) && !isDomainAction(plan_.steps[at].action)) {
        return false;
      }
    }
    return plan_.kind != PlanKind::release;
  }

  [[nodiscard]] bool changesDomain() const {
    return std::any_of(plan_.steps.begin(),
                       plan_.steps.begin() + static_cast<std::ptrdiff_t>(begunEnd()),
                       [](const Step& step) { return isDomainAction(step.action); });
  }

  // From here on, recover() rolls back as well, whatever the kernel and libvirt then show. Changes
  // nothing if this cannot be recorded.
  void turnBack() {
    tools_.database.markSteps(operation_, 0, begunEnd(), state::StepStatus::undoing);
    gate_.turnBack();
  }

  void finish() { finishOperation(operation_, tools_); }

  // An inverse that fails does not keep the other devices from being rolled back. Leases come last,
  // because a device that is not restored keeps its lease.
  void rollBack() {
    const std::size_t end = begunEnd();
    if (locks_.empty()) {
      definitions_ = definitionsFor(plan_, tools_, warnings_);
    }
    std::vector<FailedInverse> failures;
    for (std::size_t at = end; at-- > 0;) {
      try {
        rollBackEffects(plan_.steps[at]);
      } catch (const FailedInverse& failure) {
        failures.push_back(failure);
      }
    }
    for (const auto& failure : failures) {
      if (onOwnDevices(failure.action, plan_,
                       tools_)) {  // a VF that has been removed since has no state
        std::rethrow_exception(failure.cause);
      }
    }
    takeLocks();
    removeUnusedVfs(plan_, definitions_, gate_, tools_, warnings_);
    for (std::size_t at = end; at-- > 0;) {
      for (const auto& action : plan_.steps[at].undo) {
        if (isRecord(action)) {
          perform(action, tools_, warnings_);
        }
      }
    }
  }

  void rollBackEffects(const Step& step) {
    for (const auto& action : step.undo) {
      if (isRecord(action)) {
        continue;
      }
      if (isDomainAction(action)) {
        locks_.clear();
        rollBackAction(action, plan_, gate_, tools_, warnings_);
        continue;
      }
      takeLocks();
      const auto possible = onOwnDevices(action, plan_, tools_);
      if (!possible) {
        continue;  // somebody else has removed it
      }
      try {
        rollBackAction(*possible, plan_, gate_, tools_, warnings_);
      } catch (const TimeoutError&) {
        throw;
      } catch (const Error&) {
        throw FailedInverse{*possible, std::current_exception()};
      }
    }
  }

  Plan plan_;
  Tools& tools_;
  HolderGate gate_;
  NewUses uses_;
  std::vector<state::FileLock> locks_;
  std::vector<state::FileLock> writer_;
  // Read whenever the locks were free. While they are held, nobody else ends a lease.
  AskedDefinitions definitions_;
  std::int64_t operation_ = 0;
  std::size_t done_ = 0;
  bool begun_ = false;  // the step at done_
  // Steps before done_ that failed: bindings that ran together with successful ones.
  std::set<std::size_t> failed_;
  std::chrono::steady_clock::time_point checked_;
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> run(const Plan& plan, Tools& tools, std::vector<state::FileLock> locks) {
  if (plan.steps.empty()) {
    return {};
  }
  requireSealKey(plan, tools);
  return Run(plan, tools, std::move(locks)).execute();
}

}  // namespace vfpass::apply
