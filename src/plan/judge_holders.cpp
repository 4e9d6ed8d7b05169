#include "vfpass/plan/judge_holders.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/plan.hpp"

namespace vfpass::plan {
namespace {

std::vector<PciAddress> changedVfs(const ConfigureVfs& action, const VfAddresses& addresses) {
  std::vector<PciAddress> functions;
  const auto pf = addresses.find(action.pf);
  for (const auto& change : action.vfs) {
    if (pf != addresses.end() && pf->second.contains(change.index)) {
      functions.push_back(pf->second.at(change.index));
    }
  }
  return functions;
}

std::vector<PciAddress> allVfs(const PciAddress& pf, const VfAddresses& addresses) {
  std::vector<PciAddress> functions;
  if (const auto found = addresses.find(pf); found != addresses.end()) {
    for (const auto& [index, address] : found->second) {
      functions.push_back(address);
    }
  }
  return functions;
}

void addAllowances(const Action& action, std::set<Allowance>& allow) {
  const auto add = [&](const Lease& lease) {
    allow.insert(lease.allow.begin(), lease.allow.end());
  };
  const auto addAll = [&](const std::vector<Lease>& leases) { std::ranges::for_each(leases, add); };
  std::visit(Overloaded{
                 [&](const RecordLease& record) { add(record.lease); },
                 [&](const EditDomain& edit) { addAll(edit.leases); },
                 [&](const EditLiveMetadata& edit) { addAll(edit.leases); },
                 [&](const PlugDevice& plug) { add(plug.lease); },
                 [&](const UnplugDevice& unplug) { add(unplug.lease); },
                 [](const auto&) {},
             },
             action);
}

// Without its LAG a PF keeps its netdev and loses its RDMA device.
bool isPermitted(const Holder& holder, const Plan& plan, const Action& action,
                 const HolderTerms& terms) {
  if (std::holds_alternative<CreateVfs>(action)) {
    return holder.kind != HolderKind::rdma;
  }
  const bool mayStay =
      mayRunUnderOwnGuest(plan.kind, action) && !terms.takenBack.contains(holder.device);
  return holder.kind == HolderKind::vfio && holder.domain == terms.domain &&
         (mayStay || terms.unplugged.contains(holder.device));
}

void addOnce(const Objection& objection, std::vector<Objection>& objections) {
  const bool known = std::ranges::any_of(
      objections, [&](const Objection& each) { return each.message == objection.message; });
  if (!known) {
    objections.push_back(objection);
  }
}

}  // namespace

std::set<PciAddress> changedPfs(const Action& action) {
  if (const auto* configure = std::get_if<ConfigureVfs>(&action)) {
    return {configure->pf};
  }
  if (const auto* remove = std::get_if<RemoveVfs>(&action)) {
    return {remove->pf};
  }
  if (const auto* mode = std::get_if<SetEswitchMode>(&action)) {
    return {mode->pf};
  }
  const auto* link = std::get_if<SetLinkUp>(&action);
  return link != nullptr && !link->up ? std::set{link->pf} : std::set<PciAddress>{};
}

std::vector<PciAddress> touchedFunctions(const Action& action, const VfAddresses& addresses) {
  return std::visit(
      Overloaded{
          [&](const ConfigureVfs& configure) { return changedVfs(configure, addresses); },
          [&](const RemoveVfs& remove) { return allVfs(remove.pf, addresses); },
          [](const CreateVfs& create) {
            return create.lagDevicePf ? std::vector{*create.lagDevicePf}
                                      : std::vector<PciAddress>{};
          },
          // A mode change makes the driver rebuild its VFs; a link that goes down takes the carrier
          // from the guests.
          [&](const SetEswitchMode& mode) { return allVfs(mode.pf, addresses); },
          [&](const SetLinkUp& link) {
            return link.up ? std::vector<PciAddress>{} : allVfs(link.pf, addresses);
          },
          [](const BindDriver& bind) { return std::vector{bind.function}; },
          [](const ResetFunction& reset) { return std::vector{reset.function}; },
          [](const SetPartition& set) { return set.gpus; },
          [](const auto&) { return std::vector<PciAddress>{}; },
      },
      action);
}

std::optional<Objection> objectionTo(const Holder& holder, const std::set<Allowance>& allow) {
  const bool waived =
      (holder.kind == HolderKind::netdev && allow.contains(Allowance::netdevInUse)) ||
      (holder.kind == HolderKind::unknown && allow.contains(Allowance::unknownHolder));
  if (waived) {
    return std::nullopt;
  }
  return Objection{toString(holder.device) + " is in use: " + holder.description, holder.remedy,
                   ExitCode::refused};
}

Objection objectionToLock(const std::string& name) {
  return {
      name + " is locked in the kernel: a driver is being bound to it or taken from it, or hangs",
      "try again in some seconds; if that does not help, find the cause in the kernel log (dmesg)",
      ExitCode::failed};
}

std::vector<Objection> objectToHolders(const PciAddress& function,
                                       const std::vector<Holder>& holders,
                                       const std::set<Allowance>& allow) {
  std::vector<Objection> objections;
  for (const auto& holder : holders) {
    if (const auto objection =
            holder.device == function ? objectionTo(holder, allow) : std::nullopt) {
      addOnce(*objection, objections);
    }
  }
  return objections;
}

bool mayRunUnderOwnGuest(PlanKind kind, const Action& action) {
  return kind == PlanKind::attach && std::holds_alternative<ConfigureVfs>(action);
}

std::vector<Objection> objectToHolders(const Plan& plan, const VfAddresses& addresses,
                                       const std::vector<Holder>& holders,
                                       const HolderTerms& terms) {
  std::vector<Objection> objections;
  for (const auto& step : plan.steps) {
    for (const auto& function : touchedFunctions(step.action, addresses)) {
      for (const auto& holder : holders) {
        if (holder.device != function || isPermitted(holder, plan, step.action, terms)) {
          continue;
        }
        if (const auto objection = objectionTo(holder, terms.allow)) {
          addOnce(*objection, objections);
        }
      }
    }
  }
  return objections;
}

std::set<Allowance> allowancesOf(const Plan& plan) {
  std::set<Allowance> allow;
  for (const auto& step : plan.steps) {
    addAllowances(step.action, allow);
    for (const auto& action : step.undo) {
      addAllowances(action, allow);
    }
  }
  return allow;
}

namespace {

template <typename Kind>
std::set<PciAddress> devicesOfSteps(const Plan& plan) {
  std::set<PciAddress> functions;
  for (const auto& step : plan.steps) {
    if (const auto* action = std::get_if<Kind>(&step.action)) {
      functions.insert(action->lease.device);
    }
  }
  return functions;
}

VfAddresses addressesOf(const Inventory& inventory) {
  VfAddresses addresses;
  for (const auto& pf : inventory.pfs) {
    for (const auto& vf : pf.vfs) {
      addresses[pf.address].emplace(vf.index, vf.address);
    }
  }
  return addresses;
}

std::set<PciAddress> touchedBy(const Plan& plan, const VfAddresses& addresses) {
  std::set<PciAddress> touched;
  for (const auto& step : plan.steps) {
    const auto functions = touchedFunctions(step.action, addresses);
    touched.insert(functions.begin(), functions.end());
  }
  return touched;
}

}  // namespace

std::set<PciAddress> unpluggedBy(const Plan& plan) { return devicesOfSteps<UnplugDevice>(plan); }

std::set<PciAddress> pluggedBy(const Plan& plan) { return devicesOfSteps<PlugDevice>(plan); }

std::vector<Objection> objectToActiveClaims(const Plan& plan, const Inventory& inventory,
                                            const std::vector<DomainSummary>& domains) {
  const auto touched = touchedBy(plan, addressesOf(inventory));
  std::vector<Objection> objections;
  for (const auto& domain : domains) {
    for (const auto& claim : domain.liveClaims) {
      if (domain.active && domain.uuid != plan.domain && touched.contains(claim.device)) {
        objections.push_back(
            {toString(claim.device) + " is in use by running domain " + printable(domain.name),
             "stop that domain, or unplug the device from it"});
      }
    }
  }
  return objections;
}

}  // namespace vfpass::plan
