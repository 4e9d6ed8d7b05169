#include "vfpass/apply/run.hpp"

#include <algorithm>
#include <filesystem>

#include "guard_leases.hpp"
#include "perform.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::apply {
namespace {

// Steps that are journaled together. A step on a domain stands alone because no lock is held during
// it; creating VFs stands alone because its inverse must not run unless it began.
std::size_t batchEnd(const std::vector<Step>& steps, std::size_t first) {
  const auto alone = [&](std::size_t at) {
    return isDomainAction(steps[at].action) || std::holds_alternative<CreateVfs>(steps[at].action);
  };
  std::size_t end = first + 1;
  while (!alone(first) && end < steps.size() && !alone(end)) {
    ++end;
  }
  return end;
}

class Run {
 public:
  Run(const Plan& plan, Tools& tools, std::vector<state::FileLock> locks)
      : plan_(plan), tools_(tools), locks_(std::move(locks)) {}

  std::vector<std::string> execute() {
    operation_ = tools_.database.beginOperation(plan_, tools_.kernel.bootId());
    // Taken while the PF locks are held: who has these and finds this one free knows we are dead.
    writer_.push_back(state::FileLock::acquire(
        state::writerLockFile(tools_.runDirectory, operation_), tools_.lockPatience));
    try {
      for (std::size_t first = 0; first < plan_.steps.size();) {
        const std::size_t end = batchEnd(plan_.steps, first);
        runBatch(first, end);
        first = end;
      }
    } catch (const Error& error) {
      fail(error);
    }
    finish();
    return warnings_;
  }

 private:
  void runBatch(std::size_t first, std::size_t end) {
    if (isDomainAction(plan_.steps[first].action)) {
      locks_.clear();
    } else {
      takeLocks();
    }
    tools_.database.markSteps(operation_, first, end - first, state::StepStatus::started);
    for (std::size_t at = first; at < end; ++at) {
      perform(plan_.steps[at].action, tools_, warnings_);
      done_ = at + 1;
      if (const auto* created = std::get_if<CreateVfs>(&plan_.steps[at].action)) {
        checkCreatedVfs(*created, plan_, tools_);
      }
    }
    tools_.database.markSteps(operation_, first, end - first, state::StepStatus::done);
  }

  void takeLocks() {
    const auto pfs = lockedPfs(plan_);
    if (!locks_.empty() || pfs.empty()) {
      return;
    }
    locks_ = state::lockPfs(tools_.runDirectory, pfs, tools_.lockPatience);
    if (done_ > 0 && !leasesAreOurs(plan_, done_, tools_)) {
      throw Error("the leases of domain " + printable(plan_.domainName) +
                      " were taken over while libvirt was at work",
                  "see `vfpass status`, then repeat the command");
    }
  }

  [[noreturn]] void fail(const Error& error) {
    if (!isReversible()) {
      throw Error(std::string(error.what()) + " (" + std::to_string(plan_.steps.size() - done_) +
                      " of " + std::to_string(plan_.steps.size()) + " steps are left)",
                  error.remedy() + (error.remedy().empty() ? "" : "; then ") +
                      "`vfpass recover` does the rest",
                  error.code());
    }
    try {
      undo();
      finish();
    } catch (const Error& second) {
      throw Error(std::string(error.what()) + "; undoing it failed, too: " + second.what(),
                  "mend the cause, then run `vfpass recover`", error.code());
    }
    throw Error(error.what(), error.remedy(), error.code());
  }

  // What has been done to the running guest alone can be taken back: it gets its devices again.
  // Further on, a detach is a giving away, and ends by being finished.
  [[nodiscard]] bool isReversible() const {
    if (plan_.kind == PlanKind::attach || plan_.kind == PlanKind::prepare) {
      return true;
    }
    const auto end = plan_.steps.begin() + static_cast<std::ptrdiff_t>(done_);
    return plan_.kind == PlanKind::detach &&
           std::all_of(plan_.steps.begin(), end,
                       [](const Step& step) { return isLiveAction(step.action); });
  }

  void finish() {
    tools_.database.finishOperation(operation_);
    std::error_code alreadyGone;
    std::filesystem::remove(state::writerLockFile(tools_.runDirectory, operation_), alreadyGone);
  }

  void undo() {
    for (std::size_t at = done_; at-- > 0;) {
      for (const auto& action : plan_.steps[at].undo) {
        if (isDomainAction(action)) {
          locks_.clear();
        } else {
          takeLocks();
        }
        perform(action, tools_, warnings_);
      }
    }
  }

  const Plan& plan_;
  Tools& tools_;
  std::vector<state::FileLock> locks_;
  std::vector<state::FileLock> writer_;
  std::int64_t operation_ = 0;
  std::size_t done_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> run(const Plan& plan, Tools& tools, std::vector<state::FileLock> locks) {
  if (plan.steps.empty()) {
    return {};
  }
  return Run(plan, tools, std::move(locks)).execute();
}

}  // namespace vfpass::apply
