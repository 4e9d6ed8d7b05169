#include "vfpass/apply/device_owner.hpp"

#include <algorithm>
#include <optional>

#include "created_vfs.hpp"
#include "recover_operation.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::apply {
namespace {

using state::JournaledStep;
using state::StepStatus;

bool isSameLease(const Lease& lease, const std::string& entry, std::uint64_t generation) {
  return lease.entry == entry && lease.generation == generation;
}

bool isSameLease(const Lease& one, const Lease& other) {
  return isSameLease(one, other.entry, other.generation);
}

bool changes(const Action& action, const Lease& lease) {
  if (const auto* configure = std::get_if<ConfigureVfs>(&action)) {
    return std::ranges::any_of(configure->vfs, [&](const VfChange& change) {
      return isVfOf(lease, configure->pf, change.index);
    });
  }
  const auto* bind = std::get_if<BindDriver>(&action);
  const auto* reset = std::get_if<ResetFunction>(&action);
  return (bind != nullptr && bind->function == lease.device) ||
         (reset != nullptr && reset->function == lease.device);
}

bool leavesWithHost(const JournaledStep& step, PlanKind kind, const Lease& lease) {
  const bool undone = step.status == StepStatus::undone;
  if (const auto* plug = std::get_if<PlugDevice>(&step.step.action)) {
    return isSameLease(plug->lease, lease) && (undone || step.status == StepStatus::planned);
  }
  const bool givenBack = kind == PlanKind::attach ? undone : step.status != StepStatus::planned;
  return givenBack && changes(step.step.action, lease);
}

// An attach that takes a device over records its first lease; a detach that leaves it with the
// domain hands it over to nobody.
bool leavesWithDomain(const JournaledStep& step, PlanKind kind, const Lease& lease) {
  if (const auto* record = std::get_if<RecordLease>(&step.step.action)) {
    return kind == PlanKind::attach && isAdopted(lease) && isSameLease(record->lease, lease) &&
           endsLease(step.step.undo);
  }
  const auto* drop = std::get_if<DropLease>(&step.step.action);
  return kind == PlanKind::detach && drop != nullptr && !drop->handedOver &&
         isSameLease(lease, drop->entry, drop->generation);
}

// A device that an attach is to plug.
bool isPlannedPlug(const JournaledStep& step, PlanKind kind, const Lease& lease) {
  const auto* plug = std::get_if<PlugDevice>(&step.step.action);
  return kind == PlanKind::attach && plug != nullptr && isSameLease(plug->lease, lease) &&
         step.status == StepStatus::planned;
}

// The lease that a step records, if it is this one.
const RecordLease* recordOf(const Lease& lease, const Step& step) {
  const auto* record = std::get_if<RecordLease>(&step.action);
  return record != nullptr && isSameLease(record->lease, lease) ? record : nullptr;
}

bool startsWith(const Plan& prepare, const Lease& lease) {
  return std::ranges::any_of(prepare.steps, [&](const Step& step) {
    const RecordLease* record = recordOf(lease, step);
    return record != nullptr && record->lease.state == LeaseState::starting;
  });
}

// A guest that stops returns its leases to reserved; they are still the recorded ones.
bool holds(const std::vector<Lease>& leases, const Lease& recorded) {
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    const bool released =
        recorded.state == LeaseState::running && lease.state == LeaseState::reserved;
    return isSameLease(lease, recorded) && (lease.state == recorded.state || released);
  });
}

// A lease that a domain start has taken over belongs to that start.
bool isStarting(const std::vector<Lease>& leases, const std::string& entry,
                std::uint64_t generation, const Tools& tools) {
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    return isSameLease(lease, entry, generation) && lease.bootId == tools.kernel.bootId() &&
           lease.state == LeaseState::starting;
  });
}

// An attach has left a rollback open, and the domain was started since: its guest runs by now on a
// lease that was recorded as reserved. An attach to a running guest records its lease as running
// until recordLaterRun(), and a detach that keeps the configuration records a running one as
// reserved.
bool hasStarted(const std::vector<Lease>& leases, const Lease& recorded, const Tools& tools) {
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    return isSameLease(lease, recorded) && lease.bootId == tools.kernel.bootId() &&
           lease.state == LeaseState::running && recorded.state == LeaseState::reserved;
  });
}

// Of the attaches and detaches of the lease's domain.
bool isAnyStep(const std::vector<state::Operation>& open, const Lease& lease,
               bool (*test)(const JournaledStep&, PlanKind, const Lease&)) {
  return std::ranges::any_of(open, [&](const state::Operation& operation) {
    const bool movesDevices =
        operation.kind == PlanKind::attach || operation.kind == PlanKind::detach;
    return movesDevices && operation.domain == lease.domain &&
           std::ranges::any_of(operation.steps, [&](const JournaledStep& step) {
             return test(step, operation.kind, lease);
           });
  });
}

bool isVfioDriver(const std::string& driver) {
  return driver.ends_with("vfio-pci") || driver.ends_with("vfio_pci");
}

// A journal of an earlier version ends leases without naming their PFs.
bool namesEveryPf(const Plan& plan) {
  return std::ranges::none_of(plan.steps, [](const Step& step) {
    const auto lacksPf = [](const Action& action) {
      const auto* drop = std::get_if<DropLease>(&action);
      return drop != nullptr && !drop->pf;
    };
    return lacksPf(step.action) || std::ranges::any_of(step.undo, lacksPf);
  });
}

bool isUsed(const PhysicalFunction& pf, const Tools& tools) {
  const auto leases = tools.database.leasesOn({pf.address});
  const bool running = std::ranges::any_of(leases, [&](const Lease& lease) {
    return lease.pf == pf.address && lease.state != LeaseState::reserved;
  });
  return running || std::ranges::any_of(
                        pf.vfs, [](const VirtualFunction& vf) { return isVfioDriver(vf.driver); });
}

}  // namespace

bool isHosts(const Lease& lease, const std::vector<state::Operation>& open) {
  return isAnyStep(open, lease, leavesWithHost);
}

bool isDomains(const Lease& lease, const std::vector<state::Operation>& open) {
  return isAnyStep(open, lease, leavesWithDomain);
}

bool isYetToBePlugged(const Lease& lease, const std::vector<state::Operation>& open) {
  return isAnyStep(open, lease, isPlannedPlug);
}

void recordLaterRun(const Plan& prepare, Tools& tools) {
  if (prepare.kind != PlanKind::prepare) {
    return;
  }
  for (const auto& operation : tools.database.openOperationsOf(prepare.domain)) {
    for (std::size_t at = 0; operation.kind == PlanKind::attach && at < operation.steps.size();
         ++at) {
      const auto* record = std::get_if<RecordLease>(&operation.steps[at].step.action);
      if (record != nullptr && record->lease.state != LeaseState::reserved &&
          startsWith(prepare, record->lease)) {
        RecordLease returned = *record;
        returned.lease.state = LeaseState::reserved;
        tools.database.replaceAction(operation.id, at, returned);
      }
    }
  }
}

bool isRunOver(const state::Operation& operation, const Tools& tools) {
  if (operation.kind != PlanKind::attach) {
    return false;
  }
  const auto leases = tools.database.leasesOf(operation.domain);
  const auto isReturned = [&](const Lease& plugged) {
    return std::ranges::any_of(leases,
                               [&](const Lease& lease) {
                                 return isSameLease(lease, plugged) &&
                                        lease.state == LeaseState::reserved;
                               }) ||
           std::ranges::any_of(operation.steps, [&](const JournaledStep& step) {
             const RecordLease* record = recordOf(plugged, step.step);
             return record != nullptr && record->lease.state == LeaseState::reserved;
           });
  };
  return std::ranges::any_of(operation.steps, [&](const JournaledStep& step) {
    const auto* plug = std::get_if<PlugDevice>(&step.step.action);
    return plug != nullptr && isReturned(plug->lease);
  });
}

bool leasesAreOurs(const Plan& plan, std::size_t done, const Tools& tools) {
  const auto leases = tools.database.leasesOf(plan.domain);
  const bool attaches = plan.kind == PlanKind::attach;
  const auto isOurs = [&](const Action& action, bool performed) {
    if (const auto* record = std::get_if<RecordLease>(&action)) {
      const Lease& lease = record->lease;
      return performed ? holds(leases, lease)
                       : !isStarting(leases, lease.entry, lease.generation, tools) &&
                             !(attaches && hasStarted(leases, lease, tools));
    }
    const auto* drop = std::get_if<DropLease>(&action);
    return drop == nullptr || !isStarting(leases, drop->entry, drop->generation, tools);
  };
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    if (!isOurs(plan.steps[at].action, at < done)) {
      return false;
    }
  }
  return true;
}

std::vector<Lease> leasesNear(const Plan& plan, const Tools& tools) {
  if (!namesEveryPf(plan)) {
    return tools.database.leases();
  }
  const auto pfs = lockedPfs(plan);
  auto leases = tools.database.leasesOn(pfs);
  for (Lease& own : tools.database.leasesOf(plan.domain)) {
    if (std::ranges::find(pfs, own.pf) == pfs.end()) {
      leases.push_back(std::move(own));
    }
  }
  return leases;
}

std::vector<Lease> returnedSince(const Plan& plan, const Tools& tools) {
  std::vector<Lease> returned;
  if (plan.kind != PlanKind::prepare && plan.kind != PlanKind::release) {
    return returned;
  }
  const auto leases = tools.database.leasesOf(plan.domain);
  const auto open = tools.database.openOperationsOf(plan.domain);
  for (const Step& step : plan.steps) {
    const auto* record = std::get_if<RecordLease>(&step.action);
    const bool held = record != nullptr && std::ranges::any_of(leases, [&](const Lease& lease) {
                        return isSameLease(lease, record->lease) && !isHosts(lease, open);
                      });
    if (record != nullptr && !held) {
      returned.push_back(record->lease);
    }
  }
  return returned;
}

bool isOvertaken(const Plan& plan, Tools& tools) {
  const bool changesVfs = std::ranges::any_of(plan.steps, [](const Step& step) {
    return std::holds_alternative<CreateVfs>(step.action) ||
           std::holds_alternative<RemoveVfs>(step.action) ||
           std::holds_alternative<SetEswitchMode>(step.action);
  });
  if (plan.kind != PlanKind::host || !changesVfs) {
    return false;
  }
  const auto pfs = tools.kernel.readPfs();
  const auto locked = lockedPfs(plan);
  return std::ranges::any_of(pfs, [&](const PhysicalFunction& pf) {
    return std::ranges::find(locked, pf.address) != locked.end() && isUsed(pf, tools);
  });
}

namespace {

// An operation on the domain whose writer lives. Call it under the PF locks: a writer takes its own
// lock while it holds them.
std::optional<state::Operation> livingOperation(const Tools& tools, const Uuid& domain) {
  for (auto& operation : tools.database.openOperationsOf(domain)) {
    if (changesDomain(operation) &&
        !state::FileLock::tryAcquire(state::writerLockFile(tools.runDirectory, operation.id))) {
      return std::move(operation);
    }
  }
  return std::nullopt;
}

void waitFor(const state::Operation& operation, const Tools& tools,
             std::chrono::milliseconds timeout) {
  try {
    state::FileLock::acquire(state::writerLockFile(tools.runDirectory, operation.id), timeout);
  } catch (const Error&) {
    throw Error("an unfinished " + std::string(toString(operation.kind)) + " of domain " +
                    printable(operation.domainName) + " is changing the domain's XML",
                "start the domain again once it has finished", ExitCode::refused);
  }
}

}  // namespace

std::vector<state::FileLock> lockForStart(Tools& tools, const Uuid& domain,
                                          const std::vector<PciAddress>& pfs,
                                          std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::min(timeout, tools.remainingTimeout());
  for (;;) {
    auto locks = state::lockPfs(tools.runDirectory, pfs, tools.remainingTimeout());
    const auto operation = livingOperation(tools, domain);
    if (!operation) {
      return locks;
    }
    locks.clear();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    waitFor(*operation, tools, std::max(left, std::chrono::milliseconds{0}));
  }
}

}  // namespace vfpass::apply
