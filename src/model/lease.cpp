#include "vfpass/lease.hpp"

#include <algorithm>

namespace vfpass {

LeaseKind kindOf(const Lease& lease) {
  return isVf(lease) ? LeaseKind::virtualFunction : LeaseKind::pciFunction;
}

bool isVf(const Lease& lease) { return std::holds_alternative<LeasedVf>(lease.part); }

const LeasedVf& vfOf(const Lease& lease) { return std::get<LeasedVf>(lease.part); }

LeasedVf& vfOf(Lease& lease) { return std::get<LeasedVf>(lease.part); }

bool isVfOf(const Lease& lease, const PciAddress& pf) { return isVf(lease) && lease.pf == pf; }

bool isVfOf(const Lease& lease, const PciAddress& pf, unsigned index) {
  return isVfOf(lease, pf) && vfOf(lease).index == index;
}

const Lease* leaseOfVf(const std::vector<Lease>& leases, const PciAddress& pf, unsigned index) {
  const auto found =
      std::ranges::find_if(leases, [&](const Lease& lease) { return isVfOf(lease, pf, index); });
  return found == leases.end() ? nullptr : &*found;
}

std::vector<Lease> vfLeases(std::vector<Lease> leases) {
  std::erase_if(leases, [](const Lease& lease) { return !isVf(lease); });
  return leases;
}

std::vector<Lease> functionLeases(std::vector<Lease> leases) {
  std::erase_if(leases, isVf);
  return leases;
}

std::optional<unsigned> vfIndexOf(const Lease& lease) {
  return isVf(lease) ? std::optional(vfOf(lease).index) : std::nullopt;
}

bool isInfinibandVf(const Lease& lease) { return isVf(lease) && vfOf(lease).infiniband; }

VfSettings settingsOf(const Lease& lease) {
  return isVf(lease) ? vfOf(lease).settings : VfSettings{};
}

bool keepsMac(const Lease& lease) {
  return isVf(lease) && !vfOf(lease).infiniband && !vfOf(lease).settings.mac;
}

bool isAdopted(const Lease& lease) { return !lease.adoptedElement.empty(); }

bool isInterface(const Lease& lease) { return isVf(lease) && vfOf(lease).interfaceForm; }

std::set<Attribute> refusedAttributes(const Lease& lease) {
  return isVf(lease) ? vfOf(lease).refused : std::set<Attribute>{};
}

VfSettings acceptedSettings(const Lease& lease) {
  return without(settingsOf(lease), refusedAttributes(lease));
}

std::string guestIdentityOf(const Lease& lease) {
  const VfSettings settings = settingsOf(lease);
  if (isInfinibandVf(lease)) {
    return settings.portGuid ? toString(*settings.portGuid) : "";
  }
  return settings.mac ? toString(*settings.mac) : "";
}

Lease termsOf(Lease lease) {
  lease.domainName.clear();
  lease.state = LeaseState::reserved;
  lease.bootId.clear();
  lease.activatedPartition = false;
  // A start after a reboot recreates the VFs, and the hook cannot record that in the XML.
  lease.original.created = false;
  // Nor what the driver refused at that start.
  if (isVf(lease)) {
    vfOf(lease).refused.clear();
  }
  return lease;
}

std::string describeDevice(const Lease& lease) {
  if (!isVf(lease)) {
    return "PCI function " + toString(lease.pf);
  }
  return "VF " + std::to_string(vfOf(lease).index) + " of PF " + toString(lease.pf);
}

std::string vfioDriverOf(const Lease& lease) {
  const auto& driver =
      isVf(lease) ? vfOf(lease).migrationDriver : std::get<LeasedFunction>(lease.part).vfioDriver;
  return driver.value_or("vfio-pci");
}

bool migrates(const Lease& lease) { return isVf(lease) && vfOf(lease).migrationDriver.has_value(); }

std::optional<unsigned> nvlinkModuleOf(const Lease& lease) {
  const auto* function = std::get_if<LeasedFunction>(&lease.part);
  return function == nullptr ? std::nullopt : function->nvlinkModule;
}

bool sameDevice(const Lease& one, const Lease& other) {
  const bool whole = !isVf(one) || !isVf(other);
  return one.pf == other.pf && (whole || vfOf(one).index == vfOf(other).index);
}

bool isForSameDevice(const Lease& one, const Lease& other) {
  return kindOf(one) == kindOf(other) && sameDevice(one, other);
}

std::vector<DomainEdit> editsOf(const std::vector<Lease>& leases) {
  std::vector<DomainEdit> edits;
  for (const Lease& lease : leases) {
    edits.insert(edits.end(), lease.edits.begin(), lease.edits.end());
  }
  return edits;
}

std::string deviceAlias(const Lease& lease) { return std::string(aliasPrefix) + lease.entry; }

std::string portAlias(const Lease& lease) {
  return std::string(aliasPrefix) + "port-" + lease.entry;
}

std::string controllerAlias(const GuestController& controller) {
  return std::string(aliasPrefix) + "bus-" + std::to_string(controller.index);
}

std::string standbyAlias(const std::string& partner) {
  return partner.starts_with("ua-") ? partner : "ua-" + partner;
}

bool isOurAlias(std::string_view alias) { return alias.starts_with(aliasPrefix); }

}  // namespace vfpass
