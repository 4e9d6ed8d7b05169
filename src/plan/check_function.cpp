#include "vfpass/plan/check_function.hpp"

#include <algorithm>

#include "check_isolation.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::plan {
namespace {

std::string nameOf(const PciFunction& function) {
  return "PCI function " + toString(function.address);
}

void append(std::vector<Objection> found, std::vector<Objection>& objections) {
  objections.insert(objections.end(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
}

void checkNetdevs(const PciFunction& function, std::vector<Objection>& objections) {
  for (const auto& netdev : function.netdevs) {
    if (netdev.enslaved) {
      objections.push_back({nameOf(function) + " is in use on the host: its netdev " + netdev.name +
                                " belongs to a bond, bridge or VRF",
                            "take it out with `ip link set dev " + netdev.name + " nomaster`"});
    } else if (netdev.up) {
      objections.push_back(
          {nameOf(function) + " is in use on the host: its netdev " + netdev.name + " is up",
           "if nothing needs it, `ip link set dev " + netdev.name + " down`"});
    }
  }
}

void checkIdentity(const PciFunction& function, const Lease& lease,
                   std::vector<Objection>& objections) {
  if (!lease.pfSerial.empty() && !function.serial.empty() && lease.pfSerial != function.serial) {
    objections.push_back({"the card at " + toString(function.address) + " has serial " +
                              printable(function.serial) + ", not " + printable(lease.pfSerial) +
                              " as when " + lease.vfName + " was attached",
                          "check which card sits where, then run `vfpass attach` again"});
  } else if (!lease.pfPath.empty() && lease.pfPath != function.path) {
    objections.push_back({nameOf(function) + " is now at " + function.path + ", not at " +
                              lease.pfPath + " as when " + lease.vfName + " was attached",
                          "cards or bus numbers have changed; mend the address in the mapping and "
                          "run `vfpass attach` again"});
  }
}

}  // namespace

std::vector<PciAddress> namedFunctions(const std::vector<Lease>& leases,
                                       const std::vector<MappedGpu>& gpus) {
  std::set<PciAddress> named;
  for (const auto& lease : leases) {
    if (lease.kind == LeaseKind::pciFunction) {
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
             ": `gpus:` takes whole functions, and would leave its MAC and VLAN as they are",
         "give it under `vfs:` with `pf: {pci: \"" + toString(*function.physicalFunction) + "\"}`",
         ExitCode::badInput}};
  }
  if (isBridge(function)) {
    return {
        {nameOf(function) + " is a bridge: the devices below it would lose their way to the host",
         "name the device itself, `lspci -t` shows what sits where"}};
  }
  std::vector<Objection> objections;
  if (function.vfCount > 0) {
    objections.push_back({nameOf(function) + " is a PF with " + std::to_string(function.vfCount) +
                              (function.vfCount == 1 ? " VF" : " VFs") +
                              ", which would go away with it",
                          "give VFs under `vfs:`, or remove them (sriov_numvfs) when nobody uses "
                          "one"});
  }
  if (function.bootVga) {
    objections.push_back({nameOf(function) + " is the display that the host booted with: its "
                                             "console would freeze",
                          "make another display the primary one in the firmware's set-up, or boot "
                          "without one"});
  }
  append(checkIsolation(function, terms), objections);
  return objections;
}

std::vector<Objection> checkFunctionUse(const PciFunction& function, const FunctionTerms& terms) {
  std::vector<Objection> objections;
  if (!terms.allow.contains(Allowance::netdevInUse)) {
    checkNetdevs(function, objections);
  }
  if (!function.uses.empty()) {
    objections.push_back(
        {nameOf(function) + " is in use on the host: " + printable(join(function.uses, ", ")),
         "unmount it, switch the swap off, or stop what is built on it"});
  }
  if (function.vfioInUse) {
    objections.push_back(
        {nameOf(function) + " is held open through VFIO by " +
             (function.vfioUser.empty() ? "another process" : printable(function.vfioUser)),
         "stop the virtual machine or program that uses it"});
  }
  return objections;
}

std::vector<Objection> checkLeasedFunctions(const Inventory& inventory,
                                            const std::vector<Lease>& leases) {
  std::vector<Objection> objections;
  const auto named = namedFunctions(leases);
  for (const auto& lease : leases) {
    if (lease.kind != LeaseKind::pciFunction) {
      continue;
    }
    const PciFunction* function = findFunction(inventory, lease.vf);
    if (function == nullptr) {
      objections.push_back(
          {"PCI function " + toString(lease.vf) + " (" + lease.vfName + ") is not there",
           "check the card and `lspci`, or detach it", ExitCode::failed});
      continue;
    }
    checkIdentity(*function, lease, objections);
    const FunctionTerms terms{lease.vfName, {named.begin(), named.end()}, lease.allow, false};
    append(checkFunctionKind(*function, terms), objections);
    append(checkFunctionUse(*function, terms), objections);
  }
  return objections;
}

}  // namespace vfpass::plan
