#include "vfpass/plan/lease_place.hpp"

#include "vfpass/base/text.hpp"
#include "vfpass/plan/check_function.hpp"
#include "vfpass/plan/select_pf.hpp"

namespace vfpass::plan {
namespace {

// Stricter than at start: a card without a serial number does not match a lease with one.
std::string cardFault(const Lease& lease, const std::string& name, const std::string& path,
                      const std::string& serial) {
  if (path != lease.pfPath) {
    return name + " is at " + printable(path) + ", the lease is for " + printable(lease.pfPath);
  }
  if (serial != lease.pfSerial) {
    return name + " has serial number '" + printable(serial) + "', the lease is for '" +
           printable(lease.pfSerial) + "'";
  }
  return {};
}

std::string vfFault(const Inventory& inventory, const Lease& lease) {
  const PhysicalFunction* pf = findPf(inventory, lease.pf);
  const std::string name = "PF " + toString(lease.pf);
  if (pf == nullptr) {
    return name + " does not exist or has no driver";
  }
  if (std::string fault = cardFault(lease, name, pf->path, pf->serial); !fault.empty()) {
    return fault;
  }
  const auto limit = pf->vfs.empty() ? pf->totalVfs : static_cast<unsigned>(pf->vfs.size());
  if (vfOf(lease).index >= limit) {
    return name + " has no VF " + std::to_string(vfOf(lease).index);
  }
  const auto address =
      pf->vfs.empty() ? vfAddress(*pf, vfOf(lease).index) : pf->vfs[vfOf(lease).index].address;
  if (address && *address != lease.vf) {
    return describeDevice(lease) + " is at " + toString(*address) + ", the lease is for " +
           toString(lease.vf);
  }
  return {};
}

std::string functionFault(const Inventory& inventory, const std::vector<Lease>& companions,
                          const Lease& lease) {
  const PciFunction* function = findFunction(inventory, lease.vf);
  const std::string name = "PCI function " + toString(lease.vf);
  if (function == nullptr || lease.pf != lease.vf) {
    return name + " does not exist";
  }
  if (std::string fault = cardFault(lease, name, function->path, function->serial);
      !fault.empty()) {
    return fault;
  }
  const auto named = namedFunctions(companions);
  const auto objections =
      checkFunctionKind(*function, {lease.entry, {named.begin(), named.end()}, lease.allow});
  return objections.empty() ? "" : objections.front().message;
}

}  // namespace

std::string placeFault(const Inventory& inventory, const std::vector<Lease>& companions,
                       const Lease& lease) {
  return !isVf(lease) ? functionFault(inventory, companions, lease) : vfFault(inventory, lease);
}

}  // namespace vfpass::plan
