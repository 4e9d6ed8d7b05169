// Names of the vocabulary's other enumerations, and small functions of its types.
#include "names.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/hypervisor.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/pf_settings.hpp"
#include "vfpass/plan.hpp"

namespace vfpass {
namespace {

constexpr Names<Allowance, 5> allowanceNames{{{Allowance::sharedIommuGroup, "shared-iommu-group"},
                                              {Allowance::trust, "trust"},
                                              {Allowance::unsafeInterrupts, "unsafe-interrupts"},
                                              {Allowance::netdevInUse, "netdev-in-use"},
                                              {Allowance::unknownHolder, "unknown-holder"}}};
constexpr Names<HolderKind, 7> holderKindNames{{{HolderKind::vfio, "vfio"},
                                                {HolderKind::netdev, "netdev"},
                                                {HolderKind::rdma, "rdma"},
                                                {HolderKind::block, "block"},
                                                {HolderKind::gpu, "gpu"},
                                                {HolderKind::pendingWrite, "pending-write"},
                                                {HolderKind::unknown, "unknown"}}};
constexpr Names<LeaseKind, 2> leaseKindNames{
    {{LeaseKind::virtualFunction, "vf"}, {LeaseKind::pciFunction, "function"}}};
constexpr Names<LeaseState, 3> leaseStateNames{{{LeaseState::reserved, "reserved"},
                                                {LeaseState::starting, "starting"},
                                                {LeaseState::running, "running"}}};
constexpr Names<EswitchMode, 2> eswitchModeNames{
    {{EswitchMode::legacy, "legacy"}, {EswitchMode::switchdev, "switchdev"}}};
constexpr Names<PlanKind, 5> planKindNames{{{PlanKind::attach, "attach"},
                                            {PlanKind::detach, "detach"},
                                            {PlanKind::prepare, "prepare"},
                                            {PlanKind::release, "release"},
                                            {PlanKind::host, "host apply"}}};
constexpr Names<LinkLayer, 3> linkLayerNames{{{LinkLayer::unknown, "unknown"},
                                              {LinkLayer::ethernet, "ethernet"},
                                              {LinkLayer::infiniband, "infiniband"}}};

}  // namespace

std::string_view toString(Allowance allowance) { return nameOf(allowanceNames, allowance); }
std::optional<Allowance> parseAllowance(std::string_view name) {
  return valueOf(allowanceNames, name);
}
bool isLocalSystem(std::string_view uri) {
  return uri == "qemu:///system" || uri == "qemu+unix:///system";
}

std::string_view toString(HolderKind kind) { return nameOf(holderKindNames, kind); }
std::string_view toString(LeaseKind kind) { return nameOf(leaseKindNames, kind); }
std::optional<LeaseKind> parseLeaseKind(std::string_view name) {
  return valueOf(leaseKindNames, name);
}

std::string_view toString(LeaseState state) { return nameOf(leaseStateNames, state); }
std::optional<LeaseState> parseLeaseState(std::string_view name) {
  return valueOf(leaseStateNames, name);
}
std::string_view toString(EswitchMode mode) { return nameOf(eswitchModeNames, mode); }
std::optional<EswitchMode> parseEswitchMode(std::string_view name) {
  return valueOf(eswitchModeNames, name);
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

std::string deviceAlias(const Lease& lease) { return std::string(aliasPrefix) + lease.vfName; }

std::string portAlias(const Lease& lease) {
  return std::string(aliasPrefix) + "port-" + lease.vfName;
}

std::string controllerAlias(const GuestController& controller) {
  return std::string(aliasPrefix) + "bus-" + std::to_string(controller.index);
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

bool isBridge(const PciFunction& function) {
  return function.classCode >> 16U == 0x06U && !isNvSwitch(function.vendor, function.classCode);
}

bool isNvSwitch(std::uint16_t vendor, std::uint32_t classCode) {
  constexpr std::uint16_t nvidia = 0x10de;
  constexpr std::uint32_t otherBridge = 0x0680;
  return vendor == nvidia && classCode >> 8U == otherBridge;
}

}  // namespace vfpass
