#include "vfpass/plan/check_device.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

std::string nameOf(const Device& function) { return "PCI function " + toString(function.address); }

std::string nameOf(const VirtualFunction& vf) {
  return "VF " + std::to_string(vf.index) + " (" + toString(vf.address) + ")";
}

}  // namespace

std::vector<PciAddress> namedFunctions(const std::vector<Lease>& leases,
                                       const std::vector<MappedFunction>& functions) {
  std::set<PciAddress> named;
  for (const auto& lease : leases) {
    if (!isVf(lease)) {
      named.insert(lease.device);
    }
  }
  for (const auto& function : functions) {
    named.insert(function.pci);
  }
  return {named.begin(), named.end()};
}

std::set<PciAddress> devicesOf(const std::vector<Lease>& leases) {
  std::set<PciAddress> devices;
  for (const auto& lease : leases) {
    devices.insert(lease.device);
  }
  return devices;
}

std::vector<Objection> checkFunctionKind(const Device& function, const DeviceTerms& terms) {
  if (function.physicalFunction) {
    return {
        {toString(function.address) + " is a VF of PF " + toString(*function.physicalFunction) +
             ": `gpus:` passes functions through without setting MAC and VLAN",
         "list it under `vfs:` with `pf: {pci: \"" + toString(*function.physicalFunction) + "\"}`",
         ExitCode::badInput}};
  }
  if (isBridge(function)) {
    return {{nameOf(function) + " is a bridge: the host would lose the devices below it",
             "name the device itself; `lspci -t` shows the tree"}};
  }
  std::vector<Objection> objections;
  if (function.vfCount > 0) {
    objections.push_back(
        {nameOf(function) + " is a PF with " + std::to_string(function.vfCount) +
             (function.vfCount == 1 ? " VF" : " VFs") + ", which would be removed",
         "list VFs under `vfs:` instead, or remove the VFs (sriov_numvfs) if none is in use"});
  }
  if (function.bootVga) {
    objections.push_back(
        {nameOf(function) + " is the host's boot display: the host's console would freeze",
         "select another primary display in the firmware setup, or boot without one"});
  }
  append(checkIsolation(nameOf(function), function, terms), objections);
  return objections;
}

// VFIO falls back to a bus reset, but only when one owner has all devices on the bus
// (vfio_pci_dev_set_try_reset, drivers/vfio/pci/vfio_pci_core.c).
std::vector<Objection> checkReset(const Device& function, const DeviceTerms& terms) {
  auto strangers = function.busPeers;
  std::erase_if(strangers,
                [&](const GroupPeer& peer) { return terms.companions.contains(peer.address); });
  if (strangers.empty()) {
    return {};
  }
  return {{nameOf(function) + " (" + terms.name +
               ") can be reset only with its bus, which it shares with " +
               listAddresses(strangers) + ": the next guest could read data left by this one",
           companionRemedy(strangers, terms) +
               "choose another device (reset_method in sysfs lists the resets of a device)"}};
}

std::vector<Objection> checkFunctionUse(const Device& function, const DeviceTerms& terms,
                                        const std::vector<Holder>& holders) {
  auto objections = objectToHolders(function.address, holders, terms.allow);
  if (function.locked) {
    objections.push_back(objectionToLock(nameOf(function)));
  }
  return objections;
}

std::vector<Objection> checkLeasedFunctions(const Inventory& inventory,
                                            const std::vector<Lease>& leases,
                                            const std::set<PciAddress>& companions) {
  std::vector<Objection> objections;
  for (const auto& lease : leases) {
    if (isVf(lease)) {
      continue;
    }
    const Device* function = findFunction(inventory, lease.device);
    if (function == nullptr) {
      objections.push_back(
          {"PCI function " + toString(lease.device) + " (" + lease.entry + ") does not exist",
           "check the card with `lspci`, or detach it", ExitCode::failed});
      continue;
    }
    if (const std::string other = otherDevice(lease, *function); !other.empty()) {
      objections.push_back(
          {lease.entry + ": " + other,
           "check which card is in which slot, correct the address in the mapping, then "
           "run `vfpass attach` again"});
      continue;
    }
    const DeviceTerms terms{lease.entry, companions, lease.allow};
    append(checkFunctionKind(*function, terms), objections);
    append(checkFunctionUse(*function, terms, inventory.holders), objections);
  }
  return objections;
}

std::vector<Objection> checkVf(const VirtualFunction& vf, const DeviceTerms& terms,
                               const std::vector<Holder>& holders) {
  auto objections = objectToHolders(vf.address, holders, terms.allow);
  if (vf.locked) {
    objections.push_back(objectionToLock(nameOf(vf)));
  }
  append(checkIsolation(nameOf(vf), vf, terms), objections);
  return objections;
}

std::vector<Objection> checkLeasedVfs(const PhysicalFunction& pf, const std::vector<Lease>& leases,
                                      const std::vector<Holder>& holders,
                                      const std::set<PciAddress>& companions) {
  std::vector<Objection> objections;
  DeviceTerms terms{"", devicesOf(leases), {}};
  terms.companions.insert(companions.begin(), companions.end());
  for (const auto& lease : leases) {
    if (const std::string other = otherDevice(lease, pf); !other.empty()) {
      objections.push_back({lease.entry + ": " + other,
                            "check which card is in which slot, then run `vfpass attach` again"});
      continue;
    }
    if (vfOf(lease).index >= pf.vfs.size()) {
      objections.push_back(
          {"PF " + toString(pf.address) + " has " + std::to_string(pf.vfs.size()) + " VFs, but " +
               lease.entry + " needs VF " + std::to_string(vfOf(lease).index),
           "raise its virtual-function-count in host.yaml and run `vfpass host apply`",
           ExitCode::failed});
      continue;
    }
    terms.allow = lease.allow;
    append(checkVf(pf.vfs[vfOf(lease).index], terms, holders), objections);
  }
  return objections;
}

}  // namespace vfpass::plan
