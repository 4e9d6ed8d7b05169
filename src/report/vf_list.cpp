#include <algorithm>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/report/inventory_report.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

const Lease* leaseOf(const PhysicalFunction& pf, const VirtualFunction& vf,
                     const std::vector<Lease>& leases) {
  // By PF and index, not by the VF's address: addresses change when a card is added.
  const auto found = std::find_if(leases.begin(), leases.end(), [&](const Lease& lease) {
    return isVf(lease) && lease.pf == pf.address && vfOf(lease).index == vf.index;
  });
  return found == leases.end() ? nullptr : &*found;
}

// A VF missing from the kernel's reply has no values, whatever the structure holds.
VfSettings visibleSettings(const VirtualFunction& vf) {
  return vf.settingsReadable ? vf.settings : VfSettings{};
}

Cell groupCell(const VirtualFunction& vf) {
  if (!vf.iommuGroup) {
    return {nothing, Tint::bad};
  }
  const std::string number = std::to_string(*vf.iommuGroup);
  return vf.groupPeers.empty() ? Cell{number} : Cell{number + " shared", Tint::bad};
}

std::string netdevText(const VirtualFunction& vf) {
  std::vector<std::string> names;
  if (!vf.representor.empty()) {
    names.push_back(vf.representor + " (representor)");
  }
  for (const auto& netdev : vf.netdevs) {
    names.push_back(netdev.name + (netdev.enslaved ? " (enslaved)" : netdev.up ? " (up)" : ""));
  }
  return textOrNothing(join(names, ", "));
}

Cell leaseCell(const Lease* lease) {
  if (lease == nullptr) {
    return {nothing};
  }
  return {lease->domainName + " (" + std::string(toString(lease->state)) + ")",
          lease->state == LeaseState::running ? Tint::good : Tint::none};
}

// With very many VFs, the kernel's reply omits some: that is not a zero MAC.
Cell addressCell(const PhysicalFunction& pf, const VirtualFunction& vf) {
  if (!vf.settingsReadable) {
    return {"unreadable", Tint::bad};
  }
  return {hardwareAddress(vf.settings, pf.linkLayer == LinkLayer::infiniband)};
}

std::vector<Cell> vfRow(const PhysicalFunction& pf, const VirtualFunction& vf, const Lease* lease) {
  const VfSettings settings = visibleSettings(vf);
  return {{toString(pf.address)},
          {std::to_string(vf.index)},
          {toString(vf.address)},
          {textOrNothing(vf.driver)},
          groupCell(vf),
          {netdevText(vf)},
          addressCell(pf, vf),
          {vlanText(settings.vlan)},
          {onOff(settings.trust)},
          {onOff(settings.spoofCheck)},
          {linkText(settings.linkState)},
          leaseCell(lease)};
}

Json netdevsJson(const VirtualFunction& vf) {
  Json netdevs = Json::array();
  for (const auto& netdev : vf.netdevs) {
    netdevs.push_back({{"name", netdev.name}, {"up", netdev.up}, {"enslaved", netdev.enslaved}});
  }
  return netdevs;
}

Json peersJson(const VirtualFunction& vf) {
  Json peers = Json::array();
  for (const auto& peer : vf.groupPeers) {
    peers.push_back(toString(peer));
  }
  return peers;
}

Json vfJson(const PhysicalFunction& pf, const VirtualFunction& vf, const Lease* lease) {
  return {{"pf", toString(pf.address)},
          {"index", vf.index},
          {"address", toString(vf.address)},
          {"driver", textOrNull(vf.driver)},
          {"driver_override", textOrNull(vf.driverOverride)},
          {"iommu_group", valueOrNull(vf.iommuGroup)},
          {"group_peers", peersJson(vf)},
          {"netdevs", netdevsJson(vf)},
          {"representor", textOrNull(vf.representor)},
          {"rdma", textOrNull(vf.rdmaDevice)},
          {"vfio_in_use", vf.vfioInUse},
          {"vfio_user", textOrNull(vf.vfioUser)},
          {"settings_readable", vf.settingsReadable},
          {"settings", settingsJson(visibleSettings(vf))},
          {"lease", leaseJson(lease)}};
}

template <typename Visit>
void forEachVf(const Inventory& inventory, Visit visit) {
  for (const auto& pf : inventory.pfs) {
    for (const auto& vf : pf.vfs) {
      visit(pf, vf);
    }
  }
}

void writeVfsJson(std::ostream& out, const Inventory& inventory, const std::vector<Lease>& leases) {
  Json document = newDocument();
  document["vfs"] = Json::array();
  forEachVf(inventory, [&](const PhysicalFunction& pf, const VirtualFunction& vf) {
    document["vfs"].push_back(vfJson(pf, vf, leaseOf(pf, vf, leases)));
  });
  writeDocument(out, document);
}

}  // namespace

void writeVfs(std::ostream& out, const Inventory& inventory, const std::vector<Lease>& leases,
              const Style& style) {
  if (style.json) {
    writeVfsJson(out, inventory, leases);
    return;
  }
  Table table({"PF", "INDEX", "VF", "DRIVER", "GROUP", "NETDEV", "MAC OR GUID", "VLAN", "TRUST",
               "SPOOF", "LINK", "LEASED TO"});
  bool any = false;
  forEachVf(inventory, [&](const PhysicalFunction& pf, const VirtualFunction& vf) {
    table.add(vfRow(pf, vf, leaseOf(pf, vf, leases)));
    any = true;
  });
  if (!any) {
    out << "no VFs\n";
    return;
  }
  table.write(out, style);
}

}  // namespace vfpass::report
