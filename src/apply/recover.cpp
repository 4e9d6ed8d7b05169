#include "vfpass/apply/recover.hpp"

#include <algorithm>
#include <functional>

#include "guard_leases.hpp"
#include "perform.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/state/locks.hpp"

namespace vfpass::apply {
namespace {

using state::JournaledStep;
using state::Operation;
using state::StepStatus;

Plan planOf(const Operation& operation) {
  Plan plan{operation.kind, operation.domain, operation.domainName, {}, {}};
  for (const auto& journaled : operation.steps) {
    plan.steps.push_back(journaled.step);
  }
  return plan;
}

const JournaledStep* domainStepOf(const Operation& operation) {
  const auto found =
      std::find_if(operation.steps.begin(), operation.steps.end(),
                   [](const JournaledStep& step) { return isDomainAction(step.step.action); });
  return found == operation.steps.end() ? nullptr : &*found;
}

bool allDone(const Operation& operation) {
  return std::all_of(operation.steps.begin(), operation.steps.end(),
                     [](const JournaledStep& step) { return step.status == StepStatus::done; });
}

// The point of no return is the domain's XML: once it has changed, the operation goes forward.
// A release and a detach that has no XML to change always do.
bool goesForward(const Operation& operation, Tools& tools) {
  if (allDone(operation) || operation.kind == PlanKind::release) {
    return true;
  }
  const JournaledStep* edit = domainStepOf(operation);
  if (edit == nullptr) {
    return operation.kind == PlanKind::detach;
  }
  if (edit->status == StepStatus::planned) {
    return false;
  }
  return isInEffect(std::get<EditDomain>(edit->step.action), tools);
}

bool hasVf(const Tools& tools, const std::function<bool(const PhysicalFunction&, unsigned)>& is) {
  const auto pfs = tools.kernel.readPfs();
  return std::any_of(pfs.begin(), pfs.end(), [&](const PhysicalFunction& pf) {
    return std::any_of(pf.vfs.begin(), pf.vfs.end(),
                       [&](const VirtualFunction& vf) { return is(pf, vf.index); });
  });
}

bool hasPf(const Tools& tools, const PciAddress& address) {
  const auto pfs = tools.kernel.readPfs();
  return std::any_of(pfs.begin(), pfs.end(),
                     [&](const PhysicalFunction& pf) { return pf.address == address; });
}

// The operation itself, or somebody since then, may have removed the VFs: nothing is left to do
// then.
bool hasItsDevice(const Action& action, const Tools& tools) {
  const auto hasFunction = [&](const PciAddress& function) {
    return hasVf(tools, [&](const PhysicalFunction& pf, unsigned index) {
      return pf.vfs[index].address == function;
    });
  };
  if (const auto* remove = std::get_if<RemoveVfs>(&action)) {
    return hasPf(tools, remove->pf);  // a card that is gone took its VFs along
  }
  if (const auto* bind = std::get_if<BindDriver>(&action)) {
    return hasFunction(bind->function);
  }
  if (const auto* reset = std::get_if<ResetFunction>(&action)) {
    return hasFunction(reset->function);
  }
  if (const auto* configure = std::get_if<ConfigureVfs>(&action)) {
    return std::all_of(configure->vfs.begin(), configure->vfs.end(), [&](const VfChange& change) {
      return hasVf(tools, [&](const PhysicalFunction& pf, unsigned index) {
        return pf.address == configure->pf && index == change.index;
      });
    });
  }
  return true;
}

class Recovery {
 public:
  Recovery(const Operation& operation, Tools& tools)
      : operation_(operation),
        tools_(tools),
        sameBoot_(operation.bootId == tools.kernel.bootId()) {}

  std::string end() {
    // The XML is looked at before any lock is taken.
    const bool forward = goesForward(operation_, tools_);
    const Plan plan = planOf(operation_);
    const auto locks = state::lockPfs(tools_.runDirectory, lockedPfs(plan), tools_.lockPatience);
    if (forward) {
      goForward();
    } else if (wasTakenOver(plan)) {
      return finish("left to the start that has taken over its VFs");
    } else {
      goBack();
    }
    return finish(forward ? "finished" : "undone");
  }

 private:
  [[nodiscard]] bool wasTakenOver(const Plan& plan) const {
    const bool recorded = std::any_of(
        operation_.steps.begin(), operation_.steps.end(), [](const JournaledStep& step) {
          return std::holds_alternative<RecordLease>(step.step.action) &&
                 step.status == StepStatus::done;
        });
    return recorded && operation_.kind == PlanKind::attach && !leasesAreOurs(plan, tools_);
  }

  void goForward() {
    for (std::size_t at = 0; at < operation_.steps.size(); ++at) {
      const JournaledStep& step = operation_.steps[at];
      if (step.status != StepStatus::done && !isDomainAction(step.step.action)) {
        act(step.step.action);
        tools_.database.markSteps(operation_.id, at, 1, StepStatus::done);
      }
    }
  }

  void goBack() {
    for (std::size_t at = operation_.steps.size(); at-- > 0;) {
      const JournaledStep& step = operation_.steps[at];
      if (step.status == StepStatus::started || step.status == StepStatus::done) {
        for (const auto& action : step.step.undo) {
          if (!isDomainAction(action)) {  // not in effect, otherwise this would go forward
            act(action);
          }
        }
        tools_.database.markSteps(operation_.id, at, 1, StepStatus::undone);
      }
    }
  }

  void act(const Action& action) {
    // A reboot has taken away every effect on the kernel; devices may have other addresses now.
    if (!isKernelAction(action) || (sameBoot_ && hasItsDevice(action, tools_))) {
      perform(action, tools_, warnings_);
    }
  }

  std::string finish(const std::string& how) {
    tools_.database.finishOperation(operation_.id);
    std::error_code alreadyGone;
    std::filesystem::remove(state::writerLockFile(tools_.runDirectory, operation_.id), alreadyGone);
    return "interrupted " + std::string(toString(operation_.kind)) + " of domain " +
           printable(operation_.domainName) + ": " + how;
  }

  const Operation& operation_;
  Tools& tools_;
  bool sameBoot_;
  std::vector<std::string> warnings_;
};

// The writer holds its lock from before the PF locks are first given up until it ends.
bool writerLives(const Operation& operation, const Tools& tools) {
  const auto locks =
      state::lockPfs(tools.runDirectory, lockedPfs(planOf(operation)), tools.lockPatience);
  return !state::FileLock::tryAcquire(state::writerLockFile(tools.runDirectory, operation.id));
}

}  // namespace

std::vector<std::string> recover(Tools& tools, const std::optional<Uuid>& domain) {
  std::vector<std::string> ended;
  std::vector<std::string> failures;
  for (const auto& operation : tools.database.openOperations()) {
    const bool concerns = !domain || operation.domain == *domain;
    const bool possible = tools.hypervisor != nullptr || domainStepOf(operation) == nullptr;
    if (!concerns || !possible || writerLives(operation, tools)) {
      continue;
    }
    try {
      ended.push_back(Recovery(operation, tools).end());
    } catch (const Error& error) {
      failures.push_back(std::string(toString(operation.kind)) + " of domain " +
                         printable(operation.domainName) + ": " + error.what());
    }
  }
  if (!failures.empty()) {
    throw Error("interrupted work could not be ended: " + join(failures, "; "),
                "mend the cause, then run `vfpass recover`");
  }
  return ended;
}

std::vector<std::string> adoptLeases(state::Database& database,
                                     const std::vector<domain::ParsedDomain>& domains,
                                     const std::vector<Uuid>& active, const std::string& bootId) {
  const std::uint64_t handedOut = database.lastGeneration();
  const auto known = database.leases();
  std::vector<std::string> adopted;
  for (const auto& parsed : domains) {
    for (Lease lease : parsed.leases) {
      const bool isKnown = std::any_of(known.begin(), known.end(), [&](const Lease& each) {
        return each.domain == lease.domain && each.vfName == lease.vfName;
      });
      if (isKnown || lease.domain != parsed.uuid || lease.generation <= handedOut) {
        continue;
      }
      const bool runs = std::find(active.begin(), active.end(), parsed.uuid) != active.end();
      lease.domainName = parsed.name;
      lease.state = runs ? LeaseState::running : LeaseState::reserved;
      lease.bootId = bootId;
      database.recordLease(lease);
      adopted.push_back("lease " + lease.vfName + " of domain " + printable(parsed.name) +
                        " was rebuilt from its XML");
    }
  }
  return adopted;
}

}  // namespace vfpass::apply
