#include <set>

#include "vfpass/base/text.hpp"
#include "vfpass/plan.hpp"

namespace vfpass {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

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
  return "configure on PF " + toString(action.pf) + " " + join(parts, "; ");
}

std::string describeBind(const BindDriver& action) {
  if (action.driver.empty()) {
    return "leave " + toString(action.function) + " without a driver";
  }
  return "bind " + toString(action.function) + " to " + action.driver;
}

std::string namesOf(const std::vector<Lease>& leases) {
  std::vector<std::string> names;
  for (const auto& lease : leases) {
    names.push_back(lease.vfName);
  }
  return join(names, ", ");
}

std::string describeEdit(const EditDomain& action) {
  return action.leases.empty() ? "take our devices out of the domain's XML"
                               : "put " + namesOf(action.leases) + " into the domain's XML";
}

std::string describeEdit(const EditLiveMetadata& action) {
  return action.leases.empty()
             ? "take our metadata out of the running domain"
             : "name " + namesOf(action.leases) + " in the running domain's metadata";
}

void insertPfs(const std::vector<Lease>& leases, std::set<PciAddress>& pfs) {
  for (const auto& lease : leases) {
    pfs.insert(lease.pf);
  }
}

}  // namespace

std::string describe(const Action& action) {
  return std::visit(
      Overloaded{
          [](const CreateVfs& create) {
            return "create " + std::to_string(create.count) + " VFs on PF " + toString(create.pf) +
                   (create.probe ? "" : ", not probed by the host driver");
          },
          [](const RemoveVfs& remove) { return "remove the VFs of PF " + toString(remove.pf); },
          [](const ConfigureVfs& configure) { return describeConfigure(configure); },
          [](const BindDriver& bind) { return describeBind(bind); },
          [](const ResetFunction& reset) { return "reset " + toString(reset.function); },
          [](const RecordLease& record) {
            return "lease " + describeDevice(record.lease) + " as " + record.lease.vfName + " (" +
                   std::string(toString(record.lease.state)) + ")";
          },
          [](const DropLease& drop) { return "end the lease " + drop.vfName; },
          [](const EditDomain& edit) { return describeEdit(edit); },
          [](const EditLiveMetadata& edit) { return describeEdit(edit); },
          [](const PlugDevice& plug) {
            return "plug " + plug.lease.vfName + " (" + describeDevice(plug.lease) + ")" +
                   " into the running domain";
          },
          [](const UnplugDevice& unplug) {
            return "unplug " + unplug.lease.vfName + " (" + describeDevice(unplug.lease) + ")" +
                   " from the running domain";
          },
      },
      action);
}

std::vector<PciAddress> lockedPfs(const Plan& plan) {
  std::set<PciAddress> pfs;
  const auto collect = [&](const Action& action) {
    std::visit(Overloaded{
                   [&](const CreateVfs& create) { pfs.insert(create.pf); },
                   [&](const RemoveVfs& remove) { pfs.insert(remove.pf); },
                   [&](const ConfigureVfs& configure) { pfs.insert(configure.pf); },
                   [&](const RecordLease& record) { pfs.insert(record.lease.pf); },
                   [&](const EditDomain& edit) { insertPfs(edit.leases, pfs); },
                   [&](const EditLiveMetadata& edit) { insertPfs(edit.leases, pfs); },
                   [&](const PlugDevice& plug) { pfs.insert(plug.lease.pf); },
                   [&](const UnplugDevice& unplug) { pfs.insert(unplug.lease.pf); },
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
