#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "vfpass/device.hpp"
#include "vfpass/domain_edit.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/mapping.hpp"
#include "vfpass/plan.hpp"
#include "vfpass/vf_attributes.hpp"

// How the enumerations of include/vfpass are written, and read again.

namespace vfpass {
namespace {

// The values of an enumeration with their names.
template <typename Enumeration, std::size_t size>
using Names = std::array<std::pair<Enumeration, std::string_view>, size>;

template <typename Enumeration, std::size_t size>
constexpr std::string_view nameOf(const Names<Enumeration, size>& names, Enumeration value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) {
      return name;
    }
  }
  return "?";
}

template <typename Enumeration, std::size_t size>
constexpr std::optional<Enumeration> valueOf(const Names<Enumeration, size>& names,
                                             std::string_view name) {
  for (const auto& [value, candidate] : names) {
    if (candidate == name) {
      return value;
    }
  }
  return std::nullopt;
}

constexpr Names<LinkLayer, 3> linkLayerNames{{{LinkLayer::unknown, "unknown"},
                                              {LinkLayer::ethernet, "ethernet"},
                                              {LinkLayer::infiniband, "infiniband"}}};

constexpr Names<FunctionRole, 9> roleNames{{{FunctionRole::other, "other"},
                                            {FunctionRole::gpu, "gpu"},
                                            {FunctionRole::nic, "nic"},
                                            {FunctionRole::nvswitch, "nvswitch"},
                                            {FunctionRole::nvlinkManagement, "nvlink-management"},
                                            {FunctionRole::rootPort, "root-port"},
                                            {FunctionRole::upstreamPort, "upstream-port"},
                                            {FunctionRole::downstreamPort, "downstream-port"},
                                            {FunctionRole::bridge, "bridge"}}};

constexpr Names<EditPlace, 9> placeNames{{{EditPlace::memtune, "memtune"},
                                          {EditPlace::memoryBacking, "memoryBacking"},
                                          {EditPlace::cputune, "cputune"},
                                          {EditPlace::numatune, "numatune"},
                                          {EditPlace::cpu, "cpu"},
                                          {EditPlace::pcieRoot, "pcie-root"},
                                          {EditPlace::qemuCommandline, "qemu:commandline"},
                                          {EditPlace::qemuOverride, "qemu:override"},
                                          {EditPlace::domain, "domain"}}};

constexpr Names<SettingStanding, 3> standingNames{{{SettingStanding::proposed, "proposed"},
                                                   {SettingStanding::manual, "manual"},
                                                   {SettingStanding::administrators, "kept"}}};

constexpr Names<HolderKind, 7> holderKindNames{{{HolderKind::vfio, "vfio"},
                                                {HolderKind::netdev, "netdev"},
                                                {HolderKind::rdma, "rdma"},
                                                {HolderKind::block, "block"},
                                                {HolderKind::gpu, "gpu"},
                                                {HolderKind::pendingWrite, "pending-write"},
                                                {HolderKind::unknown, "unknown"}}};

constexpr Names<EswitchMode, 2> eswitchModeNames{
    {{EswitchMode::legacy, "legacy"}, {EswitchMode::switchdev, "switchdev"}}};

constexpr Names<LeaseKind, 2> leaseKindNames{
    {{LeaseKind::virtualFunction, "vf"}, {LeaseKind::pciFunction, "function"}}};

constexpr Names<LeaseState, 3> leaseStateNames{{{LeaseState::reserved, "reserved"},
                                                {LeaseState::starting, "starting"},
                                                {LeaseState::running, "running"}}};

constexpr Names<Allowance, 6> allowanceNames{{{Allowance::sharedIommuGroup, "shared-iommu-group"},
                                              {Allowance::trust, "trust"},
                                              {Allowance::unsafeInterrupts, "unsafe-interrupts"},
                                              {Allowance::netdevInUse, "netdev-in-use"},
                                              {Allowance::unknownHolder, "unknown-holder"},
                                              {Allowance::disruption, "disruption"}}};

constexpr Names<NvlinkMode, 3> nvlinkModeNames{{{NvlinkMode::all, "all"},
                                                {NvlinkMode::partition, "partition"},
                                                {NvlinkMode::disabled, "disabled"}}};

constexpr Names<IommuBackend, 3> iommuBackendNames{{{IommuBackend::automatic, "auto"},
                                                    {IommuBackend::container, "container"},
                                                    {IommuBackend::iommufd, "iommufd"}}};

constexpr Names<PlanKind, 5> planKindNames{{{PlanKind::attach, "attach"},
                                            {PlanKind::detach, "detach"},
                                            {PlanKind::prepare, "prepare"},
                                            {PlanKind::release, "release"},
                                            {PlanKind::host, "host apply"}}};

constexpr Names<LinkState, 3> linkStateNames{{{LinkState::automatic, "auto"},
                                              {LinkState::enable, "enable"},
                                              {LinkState::disable, "disable"}}};

constexpr Names<VlanProtocol, 2> protocolNames{
    {{VlanProtocol::dot1q, "802.1Q"}, {VlanProtocol::dot1ad, "802.1ad"}}};

}  // namespace

std::string_view toString(LinkLayer layer) { return nameOf(linkLayerNames, layer); }

std::string_view toString(FunctionRole role) { return nameOf(roleNames, role); }

std::string_view toString(EditPlace place) { return nameOf(placeNames, place); }

std::optional<EditPlace> parseEditPlace(std::string_view name) { return valueOf(placeNames, name); }

std::string_view toString(SettingStanding standing) { return nameOf(standingNames, standing); }

std::string_view toString(HolderKind kind) { return nameOf(holderKindNames, kind); }

std::string_view toString(EswitchMode mode) { return nameOf(eswitchModeNames, mode); }

std::optional<EswitchMode> parseEswitchMode(std::string_view name) {
  return valueOf(eswitchModeNames, name);
}

std::string_view toString(LeaseKind kind) { return nameOf(leaseKindNames, kind); }

std::optional<LeaseKind> parseLeaseKind(std::string_view name) {
  return valueOf(leaseKindNames, name);
}

std::string_view toString(LeaseState state) { return nameOf(leaseStateNames, state); }

std::optional<LeaseState> parseLeaseState(std::string_view name) {
  return valueOf(leaseStateNames, name);
}

std::string_view toString(Allowance allowance) { return nameOf(allowanceNames, allowance); }

std::optional<Allowance> parseAllowance(std::string_view name) {
  return valueOf(allowanceNames, name);
}

std::string_view toString(NvlinkMode mode) { return nameOf(nvlinkModeNames, mode); }

std::optional<NvlinkMode> parseNvlinkMode(std::string_view name) {
  return valueOf(nvlinkModeNames, name);
}

std::string_view toString(IommuBackend backend) { return nameOf(iommuBackendNames, backend); }

std::optional<IommuBackend> parseIommuBackend(std::string_view name) {
  return valueOf(iommuBackendNames, name);
}

std::string_view toString(PlanKind kind) { return nameOf(planKindNames, kind); }

std::optional<PlanKind> parsePlanKind(std::string_view name) {
  return valueOf(planKindNames, name);
}

std::string_view toString(LinkState state) { return nameOf(linkStateNames, state); }
std::optional<LinkState> parseLinkState(std::string_view name) {
  return valueOf(linkStateNames, name);
}
std::string_view toString(VlanProtocol protocol) { return nameOf(protocolNames, protocol); }
std::optional<VlanProtocol> parseVlanProtocol(std::string_view name) {
  return valueOf(protocolNames, name);
}

}  // namespace vfpass
