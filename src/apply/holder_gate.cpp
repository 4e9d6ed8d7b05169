#include "holder_gate.hpp"

#include <algorithm>
#include <thread>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/judge_holders.hpp"

namespace vfpass::apply {
namespace {

// There is no notification when another process closes a file. QEMU frees an unplugged VFIO device
// in an RCU callback, after the DEVICE_DELETED event.
constexpr std::chrono::milliseconds pollInterval{20};

plan::VfAddresses addressesFor(const std::vector<Action>& actions, Kernel& kernel) {
  plan::VfAddresses addresses;
  for (const auto& action : actions) {
    for (const auto& pf : plan::changedPfs(action)) {
      addresses.try_emplace(pf, kernel.vfAddresses(pf));
    }
  }
  return addresses;
}

std::vector<PciAddress> touchedBy(const std::vector<Action>& actions,
                                  const plan::VfAddresses& addresses) {
  std::set<PciAddress> touched;
  for (const auto& action : actions) {
    const auto functions = plan::touchedFunctions(action, addresses);
    touched.insert(functions.begin(), functions.end());
  }
  return {touched.begin(), touched.end()};
}

// Whether the kernel would bind the VF again only to change what the firmware can save of it.
bool changesMigratable(const BindDriver& action, const Device& vf, Kernel& kernel) {
  const auto needed = migratableAfter(action, vf.driver);
  if (!needed || !vf.physicalFunction) {
    return false;
  }
  const auto states = kernel.migratableVfs(*vf.physicalFunction);
  const auto addresses = kernel.vfAddresses(*vf.physicalFunction);
  return std::ranges::any_of(addresses, [&](const auto& at) {
    const auto state = states.find(at.first);
    return at.second == action.function && state != states.end() &&
           state->second.value_or(*needed) != *needed;
  });
}

bool isInEffect(const BindDriver& action, Kernel& kernel) {
  const auto function = kernel.readFunction(action.function);
  return function && function->driver == action.driver &&
         function->driverOverride == action.driverOverride &&
         !changesMigratable(action, *function, kernel);
}

bool isInEffect(const ConfigureVfs& action, Kernel& kernel) {
  const PhysicalFunction pf = kernel.readPf(action.pf);
  return std::ranges::all_of(action.vfs, [&](const VfChange& change) {
    return change.index < pf.vfs.size() &&
           differingAttributes(change.settings, pf.vfs[change.index].settings).empty();
  });
}

bool isInEffect(const Action& action, Kernel& kernel) {
  if (const auto* bind = std::get_if<BindDriver>(&action)) {
    return isInEffect(*bind, kernel);
  }
  const auto* configure = std::get_if<ConfigureVfs>(&action);
  return configure != nullptr && isInEffect(*configure, kernel);
}

std::vector<Action> actionsOf(const Plan& plan) {
  std::vector<Action> actions;
  for (const auto& step : plan.steps) {
    actions.push_back(step.action);
  }
  return actions;
}

}  // namespace

HolderGate::HolderGate(const Plan& plan, Tools& tools)
    : plan_(plan),
      tools_(tools),
      allow_(plan::allowancesOf(plan)),
      unplugged_(plan::unpluggedBy(plan)) {
  for (const auto& lease : tools.database.leasesOf(plan.domain)) {
    allow_.insert(lease.allow.begin(), lease.allow.end());
  }
}

std::vector<plan::Objection> HolderGate::objectionsToPlan() {
  return look(actionsOf(plan_), Count::allButOwnGuest);
}

std::vector<plan::Objection> HolderGate::objectionsTo(const std::vector<Action>& actions) {
  return lookUntilFree(actions, Count::everyone);
}

std::vector<plan::Objection> HolderGate::lookUntilFree(const std::vector<Action>& actions,
                                                       Count count) {
  auto objections = look(actions, count);
  const auto deadline = std::chrono::steady_clock::now() + tools_.holderTimeout;
  while (!objections.empty() && std::chrono::steady_clock::now() < deadline &&
         look(actions, Count::onlyWhoStays).empty()) {
    std::this_thread::sleep_for(pollInterval);
    objections = look(actions, count);
  }
  return objections;
}

std::vector<plan::Objection> HolderGate::objectionsOfOthersTo(const std::vector<Action>& actions) {
  return look(actions, Count::onlyWhoStays);
}

std::vector<plan::Objection> HolderGate::look(const std::vector<Action>& actions, Count count) {
  const auto addresses = addressesFor(actions, tools_.kernel);
  const auto functions = touchedBy(actions, addresses);
  if (functions.empty()) {
    return {};
  }
  auto holders = tools_.kernel.findHolders(functions);
  if (count == Count::onlyWhoStays) {
    std::erase_if(holders,
                  [](const Holder& holder) { return holder.kind == HolderKind::pendingWrite; });
  }
  if (holders.empty()) {
    return {};
  }
  const auto excused = count == Count::everyone ? std::set<PciAddress>() : unplugged_;
  const Plan disturbing = withoutEffective(actions, addresses, holders);
  return plan::objectToHolders(disturbing, addresses, holders,
                               {plan_.domain, allow_, excused, takenBack_});
}

// An action that is already in effect disturbs nobody, unless a pending write is about to revert
// it.
Plan HolderGate::withoutEffective(const std::vector<Action>& actions,
                                  const plan::VfAddresses& addresses,
                                  const std::vector<Holder>& holders) {
  Plan disturbing{plan_.kind, plan_.domain, plan_.domainName, {}, {}};
  for (const auto& action : actions) {
    const auto touched = plan::touchedFunctions(action, addresses);
    const bool pending = std::ranges::any_of(holders, [&](const Holder& holder) {
      return holder.kind == HolderKind::pendingWrite &&
             std::ranges::find(touched, holder.device) != touched.end();
    });
    if (pending || !isInEffect(action, tools_.kernel)) {
      disturbing.steps.push_back({action, {}, {}, false});
    }
  }
  return disturbing;
}

bool HolderGate::isHeldByOwnGuest() const {
  const auto actions = actionsOf(plan_);
  const auto functions = touchedBy(actions, addressesFor(actions, tools_.kernel));
  const auto holders =
      functions.empty() ? std::vector<Holder>() : tools_.kernel.findHolders(functions);
  return std::ranges::any_of(holders, [&](const Holder& holder) {
    return holder.kind == HolderKind::vfio && holder.domain == plan_.domain;
  });
}

void HolderGate::require(const std::vector<Action>& actions) {
  plan::throwObjections(describeWork(plan_) + " refused", objectionsTo(actions));
}

void HolderGate::requireToBegin(const std::vector<Action>& actions) {
  plan::throwObjections(describeWork(plan_) + " refused",
                        lookUntilFree(actions, Count::allButOwnGuest));
}

void HolderGate::turnBack() {
  takenBack_ = plan::pluggedBy(plan_);
  unplugged_ = takenBack_;
}

}  // namespace vfpass::apply
