#include "vfpass/plan/lease_device.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_device.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

// Stricter than at start: a card without a serial number does not match a lease with one.
std::string cardFault(const Lease& lease, const std::string& name, const Device& card) {
  if (card.path != lease.pfPath) {
    return name + " is at " + printable(card.path) + ", the lease is for " +
           printable(lease.pfPath);
  }
  if (card.serial != lease.pfSerial) {
    return name + " has serial number '" + printable(card.serial) + "', the lease is for '" +
           printable(lease.pfSerial) + "'";
  }
  return {};
}

}  // namespace

const Lease* findLease(const std::vector<Lease>& leases, const Uuid& domain,
                       const std::string& entry) {
  const auto found = std::ranges::find_if(
      leases, [&](const Lease& lease) { return lease.domain == domain && lease.entry == entry; });
  return found == leases.end() ? nullptr : &*found;
}

bool canMove(const Lease& lease) {
  return isVf(lease) && (vfOf(lease).teamingWith || migrates(lease));
}

std::vector<Lease> persistentLeases(const std::vector<Lease>& leases, const Uuid& domain) {
  std::vector<Lease> persistent;
  std::ranges::copy_if(leases, std::back_inserter(persistent), [&](const Lease& lease) {
    return lease.domain == domain && lease.persistent;
  });
  return persistent;
}

std::string otherDevice(const Lease& lease, const PhysicalFunction& pf) {
  std::string card = otherDevice(lease, static_cast<const Device&>(pf));
  if (!card.empty() || vfOf(lease).index >= pf.vfs.size()) {
    return card;
  }
  const PciAddress& vf = pf.vfs[vfOf(lease).index].address;
  return vf == lease.device
             ? ""
             : "VF " + std::to_string(vfOf(lease).index) + " of PF " + toString(pf.address) +
                   " is at " + toString(vf) + ", the leased VF was at " + toString(lease.device);
}

std::string otherDevice(const Lease& lease, const Device& card) {
  if (!lease.pfSerial.empty() && !card.serial.empty() && lease.pfSerial != card.serial) {
    return "the card at " + toString(card.address) + " has serial number " +
           printable(card.serial) + ", the leased card has " + printable(lease.pfSerial);
  }
  if (!lease.pfPath.empty() && lease.pfPath != card.path) {
    return "the device at " + toString(card.address) + " has PCI path " + printable(card.path) +
           ", the leased device had " + printable(lease.pfPath);
  }
  return {};
}

std::string unplugForeign(const std::string& domainName, const Lease& lease) {
  return "unplug it (`virsh detach-device-alias " + shellArgument(domainName) + " " +
         deviceAlias(lease) + " --live`), then attach again";
}

namespace {

std::string vfFault(const Inventory& inventory, const Lease& lease) {
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  const std::string name = "PF " + toString(lease.pf);
  if (pf == nullptr) {
    return name + " does not exist or has no driver";
  }
  if (std::string fault = cardFault(lease, name, *pf); !fault.empty()) {
    return fault;
  }
  const auto limit = pf->vfs.empty() ? pf->totalVfs : static_cast<unsigned>(pf->vfs.size());
  if (vfOf(lease).index >= limit) {
    return name + " has no VF " + std::to_string(vfOf(lease).index);
  }
  const auto address =
      pf->vfs.empty() ? vfAddress(*pf, vfOf(lease).index) : pf->vfs[vfOf(lease).index].address;
  if (address && *address != lease.device) {
    return describeDevice(lease) + " is at " + toString(*address) + ", the lease is for " +
           toString(lease.device);
  }
  return {};
}

std::string functionFault(const Inventory& inventory, const std::vector<Lease>& companions,
                          const Lease& lease) {
  const Device* function = findFunction(inventory, lease.device);
  const std::string name = "PCI function " + toString(lease.device);
  if (function == nullptr || lease.pf != lease.device) {
    return name + " does not exist";
  }
  if (std::string fault = cardFault(lease, name, *function); !fault.empty()) {
    return fault;
  }
  const auto objections =
      checkFunctionKind(*function, {lease.entry, devicesOf(companions), lease.allow});
  return objections.empty() ? "" : objections.front().message;
}

}  // namespace

std::string placeFault(const Inventory& inventory, const std::vector<Lease>& companions,
                       const Lease& lease) {
  return isVf(lease) ? vfFault(inventory, lease) : functionFault(inventory, companions, lease);
}

}  // namespace vfpass::plan
