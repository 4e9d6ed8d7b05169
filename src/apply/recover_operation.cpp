#include "recover_operation.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "created_vfs.hpp"
#include "holder_gate.hpp"
#include "perform.hpp"
#include "vfpass/apply/device_owner.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {
namespace {

using state::JournaledStep;
using state::Operation;
using state::StepStatus;

// Whether it may have taken effect.
bool isBegun(const JournaledStep& step) { return step.status != StepStatus::planned; }

std::size_t doneCount(const Operation& operation) {
  const auto first = std::ranges::find_if(
      operation.steps, [](const JournaledStep& step) { return step.status != StepStatus::done; });
  return static_cast<std::size_t>(first - operation.steps.begin());
}

bool allDone(const Operation& operation) { return doneCount(operation) == operation.steps.size(); }

bool isRollingBack(const Operation& operation) {
  return std::ranges::any_of(operation.steps, [](const JournaledStep& step) {
    return step.status == StepStatus::undoing || step.status == StepStatus::undone;
  });
}

template <typename Test>
const JournaledStep* findStep(const Operation& operation, Test test) {
  const auto found = std::ranges::find_if(
      operation.steps, [&](const JournaledStep& step) { return test(step.step.action); });
  return found == operation.steps.end() ? nullptr : &*found;
}

bool runs(const Operation& operation, Tools& tools) {
  const auto domain = tools.hypervisor->findDomain(toString(operation.domain));
  return domain && domain->active && operation.bootId == tools.kernel.bootId();
}

// A rollback that has begun goes on. The point of no return is the domain's persistent XML: once it
// has changed, the operation is completed. For an attach it is read even if all steps are done,
// because leases without their devices in the XML are of no use. If only the running domain is
// affected, an attach is completed if that run of the guest goes on, and a detach is rolled back
// unless the guest has already released everything. A release, and a detach that changes no domain,
// are always completed.
bool goesForward(const Operation& operation, Tools& tools) {
  if (isRollingBack(operation)) {
    return false;
  }
  const bool attaches = operation.kind == PlanKind::attach;
  if (operation.kind == PlanKind::release || (allDone(operation) && !attaches)) {
    return true;
  }
  const auto isEdit = [](const Action& action) {
    return std::holds_alternative<EditDomain>(action);
  };
  if (const JournaledStep* edit = findStep(operation, isEdit)) {
    return edit->status != StepStatus::planned &&
           isInEffect(std::get<EditDomain>(edit->step.action), tools);
  }
  if (allDone(operation)) {
    return true;
  }
  const JournaledStep* live = findStep(operation, isLiveAction);
  if (attaches) {
    return live != nullptr && live->status != StepStatus::planned && runs(operation, tools) &&
           !isRunOver(operation, tools);
  }
  const bool allReleased = std::ranges::all_of(operation.steps, [](const JournaledStep& step) {
    return !isLiveAction(step.step.action) || step.status == StepStatus::done;
  });
  return operation.kind == PlanKind::detach && allReleased;
}

class Recovery {
 public:
  Recovery(const Operation& operation, Tools& tools, std::vector<std::string>& warnings)
      : operation_(operation),
        tools_(tools),
        warnings_(warnings),
        plan_(planOf(operation)),
        gate_(plan_, tools),
        sameBoot_(operation.bootId == tools.kernel.bootId()) {}

  std::string end() {
    // Queries libvirt before taking any lock of a PF.
    const bool forward = goesForward(operation_, tools_);
    takeLocksAndDefinitions();
    isRunOver_ = isRunOver(operation_, tools_);
    if (operation_.kind == PlanKind::detach && sameBoot_) {
      if (isHostUntouched() && runsOnItsDevices()) {
        rollBackXml();
        return finish("rolled back: the domain is running with its devices");
      }
      if (keepsDefinition() && runsOnItsDevices()) {
        return finish("left as it is: the domain has been started with these devices");
      }
    }
    if (!forward && wasTakenOver()) {
      return finish("not rolled back: the domain has been started with these devices");
    }
    if (!forward && sameBoot_ && isOvertaken(plan_, tools_)) {
      return finish("left as it is: a VM now uses the VFs of the PF");
    }
    if (forward && goForward()) {
      return finish("completed" + (kept_.empty() ? "" : "; " + join(kept_, "; ")));
    }
    rollBack();
    return finish("rolled back");
  }

 private:
  // Holds no lock while libvirt works: libvirt may be waiting for our hook.
  void takeLocks() {
    if (locks_.empty()) {
      locks_ = state::lockPlan(tools_.runDirectory, plan_, tools_.remainingTimeout());
    }
  }

  // Until the locks are held, others may end their leases, so that this operation ends the last
  // one.
  void takeLocksAndDefinitions() {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (sameBoot_ && !asked_ && needsDefinitions(plan_, tools_)) {
        locks_.clear();
        definitions_ = definitionsFor(plan_, tools_, warnings_);
        asked_ = true;
      }
      takeLocks();
    }
  }

  // A rollback that was interrupted has dropped some of the leases itself; its done count is 0.
  [[nodiscard]] bool wasTakenOver() const {
    const bool recorded = std::ranges::any_of(operation_.steps, [](const JournaledStep& step) {
      return std::holds_alternative<RecordLease>(step.step.action) &&
             (step.status == StepStatus::done || step.status == StepStatus::undoing);
    });
    return recorded && operation_.kind == PlanKind::attach &&
           !leasesAreOurs(plan_, doneCount(operation_), tools_);
  }

  // A domain start read the XML before the detach changed it, or the detach has not changed it: its
  // leases have moved on, or its QEMU has the devices open.
  [[nodiscard]] bool runsOnItsDevices() const {
    return !leasesAreOurs(plan_, doneCount(operation_), tools_) || gate_.isHeldByOwnGuest();
  }

  [[nodiscard]] bool isHostUntouched() const {
    return std::ranges::all_of(operation_.steps, [](const JournaledStep& step) {
      return isDomainAction(step.step.action) || step.status == StepStatus::planned;
    });
  }

  // A detach that gets its devices back only from the running guest: the next start has them again.
  // It begins with the host only once that guest has released them.
  [[nodiscard]] bool keepsDefinition() const {
    const auto isEdit = [](const Action& action) {
      return std::holds_alternative<EditDomain>(action);
    };
    const auto returns = [](const Action& action) {
      return std::holds_alternative<RecordLease>(action);
    };
    return findStep(operation_, isEdit) == nullptr && findStep(operation_, returns) != nullptr;
  }

  void rollBackXml() {
    turnBack({});  // the host is untouched
    for (std::size_t at = operation_.steps.size(); at-- > 0;) {
      const JournaledStep& step = operation_.steps[at];
      if (isDomainAction(step.step.action) && isBegun(step)) {
        rollBackStep(at);
      }
    }
  }

  // False if a device cannot be plugged into the running guest; the attach is then rolled back.
  bool goForward() {
    addRemovals();
    leaveNamedVfs();
    gate_.require(kernelActionsAmong(stepsLeft()));
    for (std::size_t at = 0; at < operation_.steps.size(); ++at) {
      JournaledStep& step = operation_.steps[at];
      if (step.status == StepStatus::done || std::holds_alternative<EditDomain>(step.step.action)) {
        continue;
      }
      step.status = StepStatus::started;  // a rollback has to take it back, too
      try {
        act(step.step.action);
      } catch (const Error&) {
        if (operation_.kind == PlanKind::attach && isLiveAction(step.step.action)) {
          return false;
        }
        throw;
      }
      tools_.database.markSteps(operation_.id, at, 1, StepStatus::done);
      step.status = StepStatus::done;
    }
    return true;
  }

  // Hours may have passed since the plan was made, and a domain be defined with one of the VFs.
  void leaveNamedVfs() {
    const bool removes = std::ranges::any_of(operation_.steps, [](const JournaledStep& step) {
      return std::holds_alternative<RemoveVfs>(step.step.action) && step.status != StepStatus::done;
    });
    const auto named =
        removes ? namedVfs(plan_, definitions_, tools_) : std::map<PciAddress, std::string>{};
    for (std::size_t at = 0; at < operation_.steps.size(); ++at) {
      const auto* removal = std::get_if<RemoveVfs>(&operation_.steps[at].step.action);
      const auto kept = removal == nullptr ? named.end() : named.find(removal->pf);
      if (kept != named.end() && operation_.steps[at].status != StepStatus::done) {
        kept_.push_back(kept->second);
        tools_.database.markSteps(operation_.id, at, 1, StepStatus::done);
        operation_.steps[at].status = StepStatus::done;
      }
    }
  }

  void addRemovals() {
    const auto removals =
        sameBoot_ ? findUnusedVfs(plan_, definitions_, tools_, warnings_) : std::vector<Step>{};
    if (removals.empty()) {
      return;
    }
    tools_.database.appendSteps(operation_.id, removals);
    for (const Step& removal : removals) {
      operation_.steps.push_back({removal, StepStatus::planned});
      plan_.steps.push_back(removal);
    }
  }

  // For a check of all actions before any is performed, so that a refusal changes nothing.
  [[nodiscard]] std::vector<Action> kernelActionsAmong(const std::vector<Action>& actions) {
    std::vector<Action> possible;
    for (const auto& action : sameBoot_ ? actions : std::vector<Action>{}) {
      const auto* removal = std::get_if<RemoveVfs>(&action);
      const bool keepsVfs = removal != nullptr && removal->autoprobe;
      const auto left =
          isKernelAction(action) && !keepsVfs ? onOwnDevices(action, plan_, tools_) : std::nullopt;
      if (left) {
        possible.push_back(*left);
      }
    }
    return possible;
  }

  [[nodiscard]] std::vector<Action> stepsLeft() const {
    std::vector<Action> actions;
    for (const auto& step : operation_.steps) {
      if (step.status != StepStatus::done) {
        actions.push_back(step.step.action);
      }
    }
    return actions;
  }

  [[nodiscard]] std::vector<Action> inversesLeft() const {
    std::vector<Action> actions;
    for (const auto& step : operation_.steps) {
      if (isBegun(step) && step.status != StepStatus::undone) {
        actions.insert(actions.end(), step.step.undo.begin(), step.step.undo.end());
      }
    }
    return actions;
  }

  // Recorded before the first inverse: without it, the next recovery could take the steps that are
  // done, whose inverses have run, for an operation that is complete.
  void turnBack(const std::vector<Action>& inverses) {
    gate_.turnBack();
    gate_.requireToBegin(kernelActionsAmong(inverses));
    tools_.database.together([&] {
      for (std::size_t at = 0; at < operation_.steps.size(); ++at) {
        const StepStatus status = operation_.steps[at].status;
        if (status == StepStatus::started || status == StepStatus::done) {
          tools_.database.markSteps(operation_.id, at, 1, StepStatus::undoing);
        }
      }
    });
  }

  void rollBack() {
    turnBack(inversesLeft());
    for (std::size_t at = operation_.steps.size(); at-- > 0;) {
      if (isBegun(operation_.steps[at]) && operation_.steps[at].status != StepStatus::undone) {
        rollBackStep(at);
      }
    }
  }

  void rollBackStep(std::size_t at) {
    if (sameBoot_ && endsLease(operation_.steps[at].step.undo)) {
      takeLocksAndDefinitions();
      removeUnusedVfs(plan_, definitions_, gate_, tools_, warnings_);
    }
    for (const auto& action : operation_.steps[at].step.undo) {
      if (const auto possible = possiblePart(action)) {
        rollBackAction(*possible, plan_, gate_, tools_, warnings_);
      }
    }
    tools_.database.markSteps(operation_.id, at, 1, StepStatus::undone);
  }

  void act(const Action& action) {
    if (const auto possible = possiblePart(action)) {
      gate_.require({*possible});
      perform(*possible, tools_, warnings_);
    }
  }

  // Takes or releases the locks as the action requires. A reboot has reverted every effect on the
  // kernel, and devices may have other addresses now. What an attach has plugged into a run of the
  // guest has gone with that run.
  std::optional<Action> possiblePart(const Action& action) {
    if (isDomainAction(action)) {
      locks_.clear();
      return isRunOver_ && isLiveAction(action) ? std::nullopt : std::optional(action);
    }
    takeLocks();
    if (!isKernelAction(action)) {
      return recordsReturnedLease(action) ? std::nullopt : std::optional(action);
    }
    return sameBoot_ ? onOwnDevices(action, plan_, tools_) : std::nullopt;
  }

  [[nodiscard]] bool recordsReturnedLease(const Action& action) const {
    const auto* record = std::get_if<RecordLease>(&action);
    return record != nullptr &&
           std::ranges::any_of(returnedSince(plan_, tools_), [&](const Lease& returned) {
             return returned.entry == record->lease.entry;
           });
  }

  std::string finish(const std::string& how) {
    syncDefinition(plan_, tools_);
    finishOperation(operation_.id, tools_);
    return "interrupted " + describeWork(plan_) + ": " + how;
  }

  Operation operation_;
  Tools& tools_;
  std::vector<std::string>& warnings_;
  Plan plan_;
  HolderGate gate_;
  bool sameBoot_;
  bool isRunOver_ = false;  ///< isRunOver(), under the locks
  AskedDefinitions definitions_;
  bool asked_ = false;  ///< for definitions_
  std::vector<state::FileLock> locks_;
  std::vector<std::string> kept_;  ///< VFs that leaveNamedVfs() has left, with the reasons
};

}  // namespace

Plan planOf(const Operation& operation) {
  Plan plan{operation.kind, operation.domain, operation.domainName, {}, {}};
  for (const auto& journaled : operation.steps) {
    plan.steps.push_back(journaled.step);
  }
  return plan;
}

bool changesDomain(const Operation& operation) {
  return std::ranges::any_of(
      operation.steps, [](const JournaledStep& step) { return isDomainAction(step.step.action); });
}

void finishOperation(std::int64_t operation, Tools& tools) {
  tools.database.finishOperation(operation);
  removeWriterLock(operation, tools);
}

void removeWriterLock(std::int64_t operation, const Tools& tools) {
  std::error_code alreadyGone;
  std::filesystem::remove(state::writerLockFile(tools.runDirectory, operation), alreadyGone);
}

std::string thenRecover(const std::string& remedy) {
  const std::string recover = "run `vfpass recover`";
  if (remedy.empty()) {
    return recover;
  }
  return remedy.ends_with(recover) ? remedy : remedy + ", then " + recover;
}

std::string endOperation(const Operation& operation, Tools& tools,
                         std::vector<std::string>& warnings) {
  return Recovery(operation, tools, warnings).end();
}

}  // namespace vfpass::apply
