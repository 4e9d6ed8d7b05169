#include "vfpass/plan/check_function.hpp"

#include <algorithm>

#include "check_isolation.hpp"
#include "companion_lines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/plan/judge_holders.hpp"
#include "vfpass/plan/lease_device.hpp"

namespace vfpass::plan {
namespace {

std::string nameOf(const PciFunction& function) {
  return "PCI function " + toString(function.address);
}

void append(std::vector<Objection> found, std::vector<Objection>& objections) {
  objections.insert(objections.end(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
}

}  // namespace

std::vector<PciAddress> namedFunctions(const std::vector<Lease>& leases,
                                       const std::vector<MappedFunction>& gpus) {
  std::set<PciAddress> named;
  for (const auto& lease : leases) {
    if (!isVf(lease)) {
      named.insert(lease.vf);
    }
  }
  for (const auto& gpu : gpus) {
    named.insert(gpu.pci);
  }
  return {named.begin(), named.end()};
}

std::vector<Objection> checkFunctionKind(const PciFunction& function, const FunctionTerms& terms) {
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
  append(checkIsolation(function, terms), objections);
  return objections;
}

// VFIO falls back to a bus reset, but only when one owner has all devices on the bus
// (vfio_pci_dev_set_try_reset, drivers/vfio/pci/vfio_pci_core.c).
std::vector<Objection> checkReset(const PciFunction& function, const FunctionTerms& terms) {
  std::vector<GroupPeer> unlistedPeers;
  std::vector<std::string> addresses;
  for (const auto& peer : function.busPeers) {
    if (!terms.companions.contains(peer.address)) {
      unlistedPeers.push_back(peer);
      addresses.push_back(toString(peer.address));
    }
  }
  if (unlistedPeers.empty()) {
    return {};
  }
  return {{"PCI function " + toString(function.address) + " (" + terms.name +
               ") can be reset only with its bus, which it shares with " + join(addresses, ", ") +
               ": the next guest could read data left by this one",
           companionRemedy(unlistedPeers, terms) +
               "choose another device (reset_method in sysfs lists the resets of a device)"}};
}

std::vector<Objection> checkFunctionUse(const PciFunction& function, const FunctionTerms& terms,
                                        const std::vector<Holder>& holders) {
  auto objections = objectToHolders(function.address, holders, terms.allow);
  if (function.locked) {
    objections.push_back(objectionToLock(nameOf(function)));
  }
  return objections;
}

std::vector<Objection> checkLeasedFunctions(const Inventory& inventory,
                                            const std::vector<Lease>& leases) {
  std::vector<Objection> objections;
  const auto named = namedFunctions(leases);
  for (const auto& lease : leases) {
    if (isVf(lease)) {
      continue;
    }
    const PciFunction* function = findFunction(inventory, lease.vf);
    if (function == nullptr) {
      objections.push_back(
          {"PCI function " + toString(lease.vf) + " (" + lease.entry + ") does not exist",
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
    const FunctionTerms terms{lease.entry, {named.begin(), named.end()}, lease.allow, false};
    append(checkFunctionKind(*function, terms), objections);
    append(checkFunctionUse(*function, terms, inventory.holders), objections);
  }
  return objections;
}

}  // namespace vfpass::plan
