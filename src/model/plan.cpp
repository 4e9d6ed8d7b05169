#include "vfpass/plan.hpp"

#include <algorithm>
#include <set>

#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

std::string describeSettings(const VfChange& change) {
  std::vector<std::string> parts;
  for (const Attribute attribute : differingAttributes(change.settings, {})) {
    parts.push_back(std::string(toString(attribute)) + " " + describe(change.settings, attribute));
  }
  return "VF " + std::to_string(change.index) + ": " + join(parts, ", ");
}

std::string describeConfigure(const ConfigureVfs& action) {
  std::vector<std::string> parts;
  for (const auto& change : action.vfs) {
    parts.push_back(describeSettings(change));
  }
  if (action.otherwise) {
    parts.emplace_back(action.vfs.empty() ? "neutral values for its new VFs"
                                          : "neutral values for all else of its new VFs");
  }
  return "configure PF " + toString(action.pf) + ", " + join(parts, "; ");
}

std::string describeBind(const BindDriver& action) {
  const std::string function = toString(action.function);
  // mlx5MigrationDriver implies it.
  if (action.migratable.value_or(false) && action.driver != mlx5MigrationDriver) {
    return "make " + function + " migratable" +
           (action.driver.empty() ? ", without a driver" : " and bind it to " + action.driver);
  }
  return action.driver.empty() ? "unbind " + function + " from its driver"
                               : "bind " + function + " to " + action.driver;
}

std::string describePartition(const SetPartition& action) {
  std::vector<std::string> gpus;
  for (const auto& gpu : action.gpus) {
    gpus.push_back(toString(gpu));
  }
  return std::string(action.active ? "activate" : "deactivate") +
         " the fabric manager's partition of " + join(gpus, ", ");
}

std::string namesOf(const std::vector<Lease>& leases) {
  std::vector<std::string> names;
  for (const auto& lease : leases) {
    names.push_back(lease.entry);
  }
  return join(names, ", ");
}

// The elements of adopted devices are in the domain already.
bool onlyLists(const EditDomain& action) {
  return std::ranges::all_of(action.leases, isAdopted) && editsOf(action.leases).empty();
}

std::string describeEdit(const EditDomain& action) {
  if (!action.kept.empty()) {
    return "leave " + namesOf(action.kept) + " to the domain, without our metadata";
  }
  if (action.leases.empty()) {
    return "remove our devices from the domain XML";
  }
  if (onlyLists(action)) {
    return "list " + namesOf(action.leases) + " in the metadata of the domain XML";
  }
  return "write " + namesOf(action.leases) + " into the domain XML";
}

std::string describeEdit(const EditLiveMetadata& action) {
  return action.leases.empty()
             ? "remove our metadata from the running domain"
             : "list " + namesOf(action.leases) + " in the running domain's metadata";
}

std::string describeSoftRoce(const RemoveSoftRoceLink& action) {
  return "remove SoftRoCE link " + printable(action.name) + " from netdev " +
         printable(action.netdev);
}

void insertPfs(const std::vector<Lease>& leases, std::set<PciAddress>& pfs) {
  for (const auto& lease : leases) {
    pfs.insert(lease.pf);
  }
}

}  // namespace

// mlx5MigrationDriver reads the capability when it probes; another driver gets the VF without it.
std::optional<bool> migratableAfter(const BindDriver& action, const std::string& boundDriver) {
  const bool binds = action.driver == mlx5MigrationDriver;
  if (action.migratable || (!binds && boundDriver != mlx5MigrationDriver)) {
    return action.migratable;
  }
  return binds;
}

std::string describe(const Action& action) {
  // A phrase in the imperative for each kind of action.
  return std::visit(
      Overloaded{
          [](const CreateVfs& create) {
            return "create " + std::to_string(create.count) +
                   (create.count == 1 ? " VF on PF " : " VFs on PF ") + toString(create.pf) +
                   (create.probe ? "" : ", not probed by the host driver");
          },
          [](const RemoveVfs& remove) { return "remove the VFs of PF " + toString(remove.pf); },
          [](const ConfigureVfs& configure) { return describeConfigure(configure); },
          [](const BindDriver& bind) { return describeBind(bind); },
          [](const ResetFunction& reset) { return "reset " + toString(reset.function); },
          [](const RecordLease& record) {
            return "lease " + describeDevice(record.lease) + " as " + record.lease.entry + " (" +
                   std::string(toString(record.lease.state)) + ")";
          },
          [](const DropLease& drop) { return "delete lease " + drop.entry; },
          [](const EditDomain& edit) { return describeEdit(edit); },
          [](const EditLiveMetadata& edit) { return describeEdit(edit); },
          [](const PlugDevice& plug) {
            return "plug " + plug.lease.entry + " (" + describeDevice(plug.lease) + ")" +
                   " into the running domain";
          },
          [](const UnplugDevice& unplug) {
            return "unplug " + unplug.lease.entry + " (" + describeDevice(unplug.lease) + ")" +
                   " from the running domain";
          },
          [](const SetEswitchMode& set) {
            return "set the eswitch mode of PF " + toString(set.pf) + " to " +
                   std::string(toString(set.mode));
          },
          [](const SetMtu& set) {
            return "set the MTU of PF " + toString(set.pf) + " to " + std::to_string(set.mtu);
          },
          [](const SetLinkUp& set) {
            return (set.up ? "bring the link of PF " : "take the link of PF ") + toString(set.pf) +
                   (set.up ? " up" : " down");
          },
          [](const AddSoftRoceLink& add) {
            return "create SoftRoCE link " + printable(add.name) + " on netdev " +
                   printable(add.netdev);
          },
          [](const RemoveSoftRoceLink& remove) { return describeSoftRoce(remove); },
          [](const RecordSoftRoce& record) {
            return "record SoftRoCE link " + printable(record.record.name) +
                   " as created by vfpass";
          },
          [](const SetPartition& set) { return describePartition(set); },
          [](const ForgetSoftRoce& forget) {
            return "delete the record of SoftRoCE link " + printable(forget.name);
          },
      },
      action);
}

std::string describeWork(const Plan& plan) {
  const std::string work = std::string(toString(plan.kind)) + " of ";
  if (plan.kind != PlanKind::host) {
    return work + "domain " + printable(plan.domainName);
  }
  std::vector<std::string> names;
  for (const auto& pf : lockedPfs(plan)) {
    names.push_back("PF " + toString(pf));
  }
  return work + (names.empty() ? "SoftRoCE links" : join(names, ", "));
}

bool changesSoftRoce(const Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const Step& step) {
    return std::holds_alternative<AddSoftRoceLink>(step.action) ||
           std::holds_alternative<RemoveSoftRoceLink>(step.action) ||
           std::holds_alternative<RecordSoftRoce>(step.action) ||
           std::holds_alternative<ForgetSoftRoce>(step.action);
  });
}

std::vector<PciAddress> lockedPfs(const Plan& plan) {
  // Steps and their inverses name a PF themselves, or through the leases that they change.
  std::set<PciAddress> pfs;
  const auto collect = [&](const Action& action) {
    std::visit(Overloaded{
                   [&](const CreateVfs& create) { pfs.insert(create.pf); },
                   [&](const RemoveVfs& remove) { pfs.insert(remove.pf); },
                   [&](const ConfigureVfs& configure) { pfs.insert(configure.pf); },
                   [&](const RecordLease& record) { pfs.insert(record.lease.pf); },
                   [&](const DropLease& drop) {
                     if (drop.pf) {
                       pfs.insert(*drop.pf);
                     }
                   },
                   [&](const EditDomain& edit) { insertPfs(edit.leases, pfs); },
                   [&](const EditLiveMetadata& edit) { insertPfs(edit.leases, pfs); },
                   [&](const PlugDevice& plug) { pfs.insert(plug.lease.pf); },
                   [&](const UnplugDevice& unplug) { pfs.insert(unplug.lease.pf); },
                   [&](const SetEswitchMode& set) { pfs.insert(set.pf); },
                   [&](const SetMtu& set) { pfs.insert(set.pf); },
                   [&](const SetLinkUp& set) { pfs.insert(set.pf); },
                   [&](const SetPartition& set) { pfs.insert(set.gpus.begin(), set.gpus.end()); },
                   [](const auto&) {},
               },
               action);
  };
  for (const auto& step : plan.steps) {
    collect(step.action);
    for (const auto& action : step.undo) {
      collect(action);
    }
  }
  return {pfs.begin(), pfs.end()};
}

}  // namespace vfpass
