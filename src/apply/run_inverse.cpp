#include "recover_operation.hpp"

#include <algorithm>
#include <optional>

#include "perform.hpp"
#include "vfpass/apply/device_owner.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::apply {
namespace {

// Whether the device exists that the whole action concerns.
bool hasItsDevice(const Action& action, const Tools& tools) {
  const auto hasFunction = [&](const PciAddress& function) {
    return tools.kernel.readFunction(function).has_value();
  };
  return std::visit(
      Overloaded{[&](const CreateVfs& create) { return hasFunction(create.pf); },
                 // The VFs of a removed card are gone, too.
                 [&](const RemoveVfs& remove) { return hasFunction(remove.pf); },
                 [&](const SetEswitchMode& set) { return hasFunction(set.pf); },
                 [&](const SetMtu& set) { return hasFunction(set.pf); },
                 [&](const SetLinkUp& set) { return hasFunction(set.pf); },
                 [&](const BindDriver& bind) { return hasFunction(bind.function); },
                 [&](const ResetFunction& reset) { return hasFunction(reset.function); },
                 [&](const AddSoftRoceLink& add) {
                   return tools.kernel.softRoceFault(add.netdev).empty();
                 },
                 [](const auto&) { return true; }},
      action);
}

std::optional<Action> onExistingVfs(ConfigureVfs action, const Tools& tools) {
  const auto existing = tools.kernel.vfAddresses(action.pf);
  std::erase_if(action.vfs,
                [&](const VfChange& change) { return !existing.contains(change.index); });
  return action.vfs.empty() ? std::nullopt : std::optional<Action>(std::move(action));
}

// Another user of the VFs of this PF; empty if there is none. A write of vfpass itself that is
// still pending in the kernel does not count.
std::string otherUser(const RemoveVfs& removal, const Plan& plan, HolderGate& gate, Tools& tools) {
  const auto objections = gate.objectionsOfOthersTo({removal});
  if (!objections.empty()) {
    return objections.front().message;
  }
  const auto leases = tools.database.leasesOn({removal.pf});
  const auto lease = std::ranges::find_if(leases, [&](const Lease& each) {
    return each.pf == removal.pf && each.domain != plan.domain;
  });
  return lease == leases.end()
             ? ""
             : describeDevice(*lease) + " is leased to domain " + printable(lease->domainName);
}

void rollBackCreation(const RemoveVfs& removal, const Plan& plan, HolderGate& gate, Tools& tools,
                      std::vector<std::string>& warnings) {
  std::string user = otherUser(removal, plan, gate, tools);
  if (user.empty()) {
    gate.require({removal});  // refused while a write is pending, so that the next recovery retries
    try {
      perform(removal, tools, warnings);
      return;
    } catch (const Error& error) {
      if (error.code() != ExitCode::refused) {
        throw;
      }
      user = error.what();
    }
  }
  tools.kernel.setVfProbing(removal.pf, *removal.autoprobe);
  warnings.push_back("kept the new VFs of PF " + toString(removal.pf) + ": " + user);
}

// The leases of other VMs, and those of which a start or stop has lost the device: none is the
// plan's.
std::vector<Lease> foreignLeases(const Plan& plan, const Tools& tools) {
  auto leases = leasesNear(plan, tools);
  std::erase_if(leases, [&](const Lease& lease) { return lease.domain == plan.domain; });
  const auto returned = returnedSince(plan, tools);
  leases.insert(leases.end(), returned.begin(), returned.end());
  return leases;
}

// An inverse that removes VFs asks for itself (rollBackCreation).
bool touchesOneOf(const std::vector<Lease>& leases, const Action& action) {
  const auto* bind = std::get_if<BindDriver>(&action);
  const auto* reset = std::get_if<ResetFunction>(&action);
  const auto* removal = std::get_if<RemoveVfs>(&action);
  const auto* partition = std::get_if<SetPartition>(&action);
  return std::ranges::any_of(leases, [&](const Lease& lease) {
    return (partition != nullptr &&
            std::ranges::find(partition->gpus, lease.device) != partition->gpus.end()) ||
           (bind != nullptr && lease.device == bind->function) ||
           (reset != nullptr && lease.device == reset->function) ||
           (removal != nullptr && !removal->autoprobe && lease.pf == removal->pf);
  });
}

std::optional<Action> withoutLeased(ConfigureVfs action, const std::vector<Lease>& leases) {
  std::erase_if(action.vfs, [&](const VfChange& change) {
    return std::ranges::any_of(
        leases, [&](const Lease& lease) { return isVfOf(lease, action.pf, change.index); });
  });
  return action.vfs.empty() ? std::nullopt : std::optional<Action>(std::move(action));
}

}  // namespace

std::optional<Action> onOwnDevices(const Action& action, const Plan& plan, Tools& tools) {
  auto existing = onExistingDevices(action, tools);
  if (!existing || plan.kind == PlanKind::host) {
    return existing;
  }
  const auto leases = foreignLeases(plan, tools);
  if (const auto* configure = std::get_if<ConfigureVfs>(&*existing)) {
    return withoutLeased(*configure, leases);
  }
  return touchesOneOf(leases, *existing) ? std::nullopt : existing;
}

void rollBackAction(const Action& inverse, const Plan& plan, HolderGate& gate, Tools& tools,
                    std::vector<std::string>& warnings) {
  // Only the inverse of a creation has a previous probing state.
  const auto* removal = std::get_if<RemoveVfs>(&inverse);
  if (removal != nullptr && removal->autoprobe) {
    rollBackCreation(*removal, plan, gate, tools, warnings);
    return;
  }
  gate.require({inverse});
  performInverse(inverse, tools, warnings);
}

std::optional<Action> onExistingDevices(const Action& action, const Tools& tools) {
  if (const auto* configure = std::get_if<ConfigureVfs>(&action)) {
    return onExistingVfs(*configure, tools);
  }
  return hasItsDevice(action, tools) ? std::optional(action) : std::nullopt;
}

}  // namespace vfpass::apply
