#include <algorithm>

#include "render_parts.hpp"

namespace vfpass::metrics {
namespace {

// Empty where unknown, as sriov-network-metrics-exporter does.
std::string numaLabel(int node) { return node < 0 ? std::string() : std::to_string(node); }

// By PF and index, not by the VF's address: addresses change when a card is added.
const Lease* leaseOf(const Observation& observation, const PhysicalFunction& pf, unsigned index) {
  if (!observation.leases) {
    return nullptr;
  }
  const auto found = std::ranges::find_if(*observation.leases, [&](const Lease& lease) {
    return isVf(lease) && lease.pf == pf.address && vfOf(lease).index == index;
  });
  return found == observation.leases->end() ? nullptr : &*found;
}

// MAC or port GUID; empty where the kernel does not report it.
std::string macLabel(const PhysicalFunction& pf, const VirtualFunction& vf) {
  if (!vf.settingsReadable) {
    return {};
  }
  if (pf.linkLayer == LinkLayer::infiniband) {
    return vf.settings.portGuid ? toString(*vf.settings.portGuid) : std::string();
  }
  return vf.settings.mac ? toString(*vf.settings.mac) : std::string();
}

std::string vlanLabel(const VirtualFunction& vf) {
  const bool known = vf.settingsReadable && vf.settings.vlan;
  return known ? std::to_string(vf.settings.vlan->id) : std::string();
}

void addPf(const PhysicalFunction& pf, Exposition& target) {
  const std::string address = toString(pf.address);
  target.add(families::pfInfo,
             {pf.driver, std::string(toString(pf.linkLayer)), numaLabel(pf.numaNode), address,
              pf.netdev, pf.rdmaDevice, pf.serial},
             std::uint64_t{1});
  target.add(families::pfVfs, {address, pf.netdev}, std::uint64_t{pf.vfs.size()});
  target.add(families::pfVfsLimit, {address, pf.netdev}, std::uint64_t{pf.totalVfs});
}

void addVf(const Observation& observation, const PhysicalFunction& pf, const VirtualFunction& vf,
           Exposition& target) {
  const Lease* lease = leaseOf(observation, pf, vf.index);
  target.add(families::vfInfo,
             {vf.driver, lease != nullptr ? lease->entry : "",
              vf.iommuGroup ? std::to_string(*vf.iommuGroup) : "", macLabel(pf, vf),
              numaLabel(pf.numaNode), toString(vf.address), pf.netdev, vf.rdmaDevice,
              lease != nullptr ? toString(lease->domain) : "", std::to_string(vf.index),
              vlanLabel(vf), lease != nullptr ? lease->domainName : ""},
             std::uint64_t{1});
}

void addStatistics(const std::map<unsigned, VfStatistics>& table, const PhysicalFunction& pf,
                   const VirtualFunction& vf, Exposition& target) {
  const auto found = table.find(vf.index);
  if (found == table.end()) {
    return;
  }
  for (const auto& [name, value] : found->second) {
    target.add(sriovFamily(name),
               {numaLabel(pf.numaNode), toString(vf.address), pf.netdev, std::to_string(vf.index)},
               value);
  }
}

}  // namespace

void addDevices(const Observation& observation, Exposition& target) {
  for (const PhysicalFunction& pf : observation.pfs) {
    addPf(pf, target);
    const auto table = observation.statistics.find(pf.address);
    for (const VirtualFunction& vf : pf.vfs) {
      addVf(observation, pf, vf, target);
      if (table != observation.statistics.end()) {
        addStatistics(table->second, pf, vf, target);
      }
    }
  }
}

}  // namespace vfpass::metrics
