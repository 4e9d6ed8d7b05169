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

std::size_t doneCount(const Operation& operation) {
  const auto first =
      std::find_if(operation.steps.begin(), operation.steps.end(),
                   [](const JournaledStep& step) { return step.status != StepStatus::done; });
  return static_cast<std::size_t>(first - operation.steps.begin());
}

bool allDone(const Operation& operation) { return doneCount(operation) == operation.steps.size(); }

template <typename Test>
const JournaledStep* findStep(const Operation& operation, Test test) {
  const auto found =
      std::find_if(operation.steps.begin(), operation.steps.end(),
                   [&](const JournaledStep& step) { return test(step.step.action); });
  return found == operation.steps.end() ? nullptr : &*found;
}

bool runs(const Operation& operation, Tools& tools) {
  const auto domain = tools.hypervisor->findDomain(toString(operation.domain));
  return domain && domain->active && operation.bootId == tools.kernel.bootId();
}

// The point of no return is the domain's persistent XML: once it has changed, the operation goes
// forward. What is about the running domain alone is finished by an attach, if it still runs, and
// taken back by a detach, unless the guest has let go of everything already. A release, and a
// detach that changes no domain, are always finished.
bool goesForward(const Operation& operation, Tools& tools) {
  if (allDone(operation) || operation.kind == PlanKind::release) {
    return true;
  }
  const auto isEdit = [](const Action& action) {
    return std::holds_alternative<EditDomain>(action);
  };
  if (const JournaledStep* edit = findStep(operation, isEdit)) {
    return edit->status != StepStatus::planned &&
           isInEffect(std::get<EditDomain>(edit->step.action), tools);
  }
  const JournaledStep* live = findStep(operation, isLiveAction);
  if (operation.kind == PlanKind::attach) {
    return live != nullptr && live->status != StepStatus::planned && runs(operation, tools);
  }
  const bool letGo =
      std::all_of(operation.steps.begin(), operation.steps.end(), [](const JournaledStep& step) {
        return !isLiveAction(step.step.action) || step.status == StepStatus::done;
      });
  return operation.kind == PlanKind::detach && letGo;
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
    return tools.kernel.readFunction(function).has_value();
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
        plan_(planOf(operation)),
        sameBoot_(operation.bootId == tools.kernel.bootId()) {}

  std::string end() {
    // The domain is looked at before any lock is taken.
    const bool forward = goesForward(operation_, tools_);
    takeLocks();
    if (!forward && wasTakenOver()) {
      return finish("left to the start that has taken over its VFs");
    }
    if (forward && goForward()) {
      return finish("finished");
    }
    goBack();
    return finish("undone");
  }

 private:
  // No lock of ours is held while libvirt is at work: it may be waiting for our hook.
  void takeLocks() {
    if (locks_.empty()) {
      locks_ = state::lockPfs(tools_.runDirectory, lockedPfs(plan_), tools_.lockPatience);
    }
  }

  [[nodiscard]] bool wasTakenOver() const {
    const bool recorded = std::any_of(
        operation_.steps.begin(), operation_.steps.end(), [](const JournaledStep& step) {
          return std::holds_alternative<RecordLease>(step.step.action) &&
                 step.status == StepStatus::done;
        });
    return recorded && operation_.kind == PlanKind::attach &&
           !leasesAreOurs(plan_, doneCount(operation_), tools_);
  }

  // False when the running guest cannot get what was promised to it: the attach is undone then.
  bool goForward() {
    for (std::size_t at = 0; at < operation_.steps.size(); ++at) {
      const JournaledStep& step = operation_.steps[at];
      if (step.status == StepStatus::done || std::holds_alternative<EditDomain>(step.step.action)) {
        continue;
      }
      try {
        act(step.step.action);
      } catch (const Error&) {
        if (operation_.kind == PlanKind::attach && isLiveAction(step.step.action)) {
          return false;
        }
        throw;
      }
      tools_.database.markSteps(operation_.id, at, 1, StepStatus::done);
    }
    return true;
  }

  void goBack() {
    for (std::size_t at = operation_.steps.size(); at-- > 0;) {
      const JournaledStep& step = operation_.steps[at];
      if (step.status == StepStatus::started || step.status == StepStatus::done) {
        for (const auto& action : step.step.undo) {
          act(action);
        }
        tools_.database.markSteps(operation_.id, at, 1, StepStatus::undone);
      }
    }
  }

  void act(const Action& action) {
    if (isDomainAction(action)) {
      locks_.clear();
      perform(action, tools_, warnings_);
      return;
    }
    takeLocks();
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
  Plan plan_;
  bool sameBoot_;
  std::vector<state::FileLock> locks_;
  std::vector<std::string> warnings_;
};

// The writer holds its lock from before the PF locks are first given up until it ends.
bool writerLives(const Operation& operation, const Tools& tools) {
  const auto locks =
      state::lockPfs(tools.runDirectory, lockedPfs(planOf(operation)), tools.lockPatience);
  return !state::FileLock::tryAcquire(state::writerLockFile(tools.runDirectory, operation.id));
}

}  // namespace

Recovered recover(Tools& tools, const std::optional<Uuid>& domain) {
  Recovered recovered;
  for (const auto& operation : tools.database.openOperations()) {
    const bool concerns = !domain || operation.domain == *domain;
    const bool possible =
        tools.hypervisor != nullptr || findStep(operation, isDomainAction) == nullptr;
    if (!concerns || !possible || writerLives(operation, tools)) {
      continue;
    }
    try {
      recovered.ended.push_back(Recovery(operation, tools).end());
    } catch (const Error& error) {
      recovered.unended.push_back(
          {operation.domain, std::string(toString(operation.kind)) + " of domain " +
                                 printable(operation.domainName) + ": " + error.what()});
    }
  }
  return recovered;
}

void throwUnended(const std::vector<UnendedWork>& unended) {
  if (unended.empty()) {
    return;
  }
  std::vector<std::string> lines;
  for (const auto& work : unended) {
    lines.push_back(work.line);
  }
  throw Error("interrupted work could not be ended: " + join(lines, "; "),
              "mend the cause, then run `vfpass recover`");
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
