// Spellings of the vocabulary's remaining enumerations and small names.
#include "names.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"

namespace vfpass {
namespace {

constexpr Names<Allowance, 4> allowanceNames{{{Allowance::sharedIommuGroup, "shared-iommu-group"},
                                              {Allowance::trust, "trust"},
                                              {Allowance::unsafeInterrupts, "unsafe-interrupts"},
                                              {Allowance::netdevInUse, "netdev-in-use"}}};
constexpr Names<LeaseKind, 2> leaseKindNames{
    {{LeaseKind::virtualFunction, "vf"}, {LeaseKind::pciFunction, "function"}}};
constexpr Names<LeaseState, 3> leaseStateNames{{{LeaseState::reserved, "reserved"},
                                                {LeaseState::starting, "starting"},
                                                {LeaseState::running, "running"}}};
constexpr Names<PlanKind, 4> planKindNames{{{PlanKind::attach, "attach"},
                                            {PlanKind::detach, "detach"},
                                            {PlanKind::prepare, "prepare"},
                                            {PlanKind::release, "release"}}};
constexpr Names<LinkLayer, 3> linkLayerNames{{{LinkLayer::unknown, "unknown"},
                                              {LinkLayer::ethernet, "ethernet"},
                                              {LinkLayer::infiniband, "infiniband"}}};
constexpr std::string_view aliasPrefix = "ua-vfpass-";

}  // namespace

std::string_view toString(Allowance allowance) { return nameOf(allowanceNames, allowance); }
std::optional<Allowance> parseAllowance(std::string_view name) {
  return valueOf(allowanceNames, name);
}
std::string_view toString(LeaseKind kind) { return nameOf(leaseKindNames, kind); }
std::optional<LeaseKind> parseLeaseKind(std::string_view name) {
  return valueOf(leaseKindNames, name);
}

std::string_view toString(LeaseState state) { return nameOf(leaseStateNames, state); }
std::optional<LeaseState> parseLeaseState(std::string_view name) {
  return valueOf(leaseStateNames, name);
}
std::string_view toString(PlanKind kind) { return nameOf(planKindNames, kind); }
std::optional<PlanKind> parsePlanKind(std::string_view name) {
  return valueOf(planKindNames, name);
}
std::string_view toString(LinkLayer layer) { return nameOf(linkLayerNames, layer); }

std::string toString(const SourcePlace& place) {
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string toString(const PfSelector& selector) {
  if (selector.netdev) {
    return "netdev " + *selector.netdev;
  }
  if (selector.pci) {
    return "pci " + toString(*selector.pci);
  }
  if (selector.rdma) {
    return "rdma " + *selector.rdma;
  }
  return "near " + selector.near.value_or("?");
}

std::string describeDevice(const Lease& lease) {
  if (lease.kind == LeaseKind::pciFunction) {
    return "PCI function " + toString(lease.pf);
  }
  return "VF " + std::to_string(lease.vfIndex) + " of PF " + toString(lease.pf);
}

bool sameDevice(const Lease& one, const Lease& other) {
  const bool whole = one.kind == LeaseKind::pciFunction || other.kind == LeaseKind::pciFunction;
  return one.pf == other.pf && (whole || one.vfIndex == other.vfIndex);
}

std::string deviceAlias(const Lease& lease) { return std::string(aliasPrefix) + lease.vfName; }

std::string portAlias(const Lease& lease) {
  return std::string(aliasPrefix) + "port-" + lease.vfName;
}

bool isOurAlias(std::string_view alias) { return alias.starts_with(aliasPrefix); }

const PhysicalFunction* findPf(const Inventory& inventory, const PciAddress& address) {
  for (const auto& pf : inventory.pfs) {
    if (pf.address == address) {
      return &pf;
    }
  }
  return nullptr;
}

const PciFunction* findFunction(const Inventory& inventory, const PciAddress& address) {
  for (const auto& function : inventory.functions) {
    if (function.address == address) {
      return &function;
    }
  }
  return nullptr;
}

bool isBridge(const PciFunction& function) { return function.classCode >> 16U == 0x06U; }

}  // namespace vfpass
