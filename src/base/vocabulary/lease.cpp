#include "vfpass/lease.hpp"

#include "names.hpp"

namespace vfpass {
namespace {

constexpr Names<LeaseKind, 2> leaseKindNames{
    {{LeaseKind::virtualFunction, "vf"}, {LeaseKind::pciFunction, "function"}}};
constexpr Names<LeaseState, 3> leaseStateNames{{{LeaseState::reserved, "reserved"},
                                                {LeaseState::starting, "starting"},
                                                {LeaseState::running, "running"}}};

}  // namespace

std::string_view toString(LeaseKind kind) { return nameOf(leaseKindNames, kind); }

std::optional<LeaseKind> parseLeaseKind(std::string_view name) {
  return valueOf(leaseKindNames, name);
}

std::string_view toString(LeaseState state) { return nameOf(leaseStateNames, state); }

std::optional<LeaseState> parseLeaseState(std::string_view name) {
  return valueOf(leaseStateNames, name);
}

Lease termsOf(Lease lease) {
  lease.domainName.clear();
  lease.state = LeaseState::reserved;
  lease.bootId.clear();
  // A start after a reboot recreates the VFs, and the hook cannot record that in the XML.
  lease.original.created = false;
  return lease;
}

std::string describeDevice(const Lease& lease) {
  if (lease.kind == LeaseKind::pciFunction) {
    return "PCI function " + toString(lease.pf);
  }
  return "VF " + std::to_string(lease.vfIndex) + " of PF " + toString(lease.pf);
}

std::string vfioDriverOf(const Lease& lease) { return lease.vfioDriver.value_or("vfio-pci"); }

bool sameDevice(const Lease& one, const Lease& other) {
  const bool whole = one.kind == LeaseKind::pciFunction || other.kind == LeaseKind::pciFunction;
  return one.pf == other.pf && (whole || one.vfIndex == other.vfIndex);
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

bool isOurAlias(std::string_view alias) { return alias.starts_with(aliasPrefix); }

}  // namespace vfpass
