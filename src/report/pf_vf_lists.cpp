#include "vfpass/report/command_reports.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>

#include "json.hpp"
#include "text_values.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/mlx5_firmware.hpp"
#include "vfpass/port_fault.hpp"
#include "vfpass/report/table.hpp"

namespace vfpass::report {
namespace {

std::string pciId(std::uint16_t id) {
  const std::array<std::uint8_t, 2> bytes{static_cast<std::uint8_t>(id >> 8U),
                                          static_cast<std::uint8_t>(id & 0xffU)};
  return hexBytes(bytes, "");
}

std::string linkLayerText(LinkLayer layer) {
  return layer == LinkLayer::unknown ? notObservable : std::string(toString(layer));
}

std::string vfCountText(const PhysicalFunction& pf) {
  return std::to_string(pf.vfs.size()) + "/" + std::to_string(pf.totalVfs);
}

std::vector<Cell> pfRow(const PhysicalFunction& pf) {
  return {{toString(pf.address)},
          {textOrNothing(pf.netdev())},
          {textOrNothing(pf.rdmaDevice())},
          {textOrNothing(pf.driver)},
          {linkLayerText(pf.linkLayer)},
          {vfCountText(pf)},
          // The kernel reports -1 if the firmware does not assign a node.
          {pf.numaNode < 0 ? notObservable : std::to_string(pf.numaNode)},
          {pf.model.empty() ? pciId(pf.vendor) + ":" + pciId(pf.device) : pf.model},
          {textOrNothing(pf.serial)}};
}

constexpr const char* managesNvlink = "manages the NVLink of the GPU board, and is not a NIC";

std::string whyNoPf(const Device& nic) {
  if (nic.role == FunctionRole::nvlinkManagement) {
    return managesNvlink;
  }
  const std::string driver = nic.driver.empty() ? " and is bound to no driver" : "";
  const bool firmware = hasMlx5Firmware(nic.vendor, nic.driver);
  return "shows no SR-IOV capability" + driver +
         (firmware ? "; `vfpass doctor` explains it (sriov-firmware)" : "");
}

// Why the VFs of a listed PF are of no use.
std::optional<PortFault> faultOf(const PhysicalFunction& pf) {
  if (pf.role == FunctionRole::nvlinkManagement) {
    return PortFault{managesNvlink, "leave it to the fabric manager"};
  }
  return faultOfPort(pf);
}

Json faultJson(const PhysicalFunction& pf) {
  const auto fault = faultOf(pf);
  return fault ? Json{{"what", fault->what}, {"remedy", fault->remedy}} : Json();
}

Json pfJson(const PhysicalFunction& pf) {
  return {
      {"address", toString(pf.address)},
      {"path", pf.path},
      {"vendor", pciId(pf.vendor)},
      {"device", pciId(pf.device)},
      {"model", textOrNull(pf.model)},
      {"serial", textOrNull(pf.serial)},
      {"driver", textOrNull(pf.driver)},
      {"netdev", textOrNull(pf.netdev())},
      {"netdev_up", pf.netdev().empty() ? Json() : Json(pf.uplink().up)},
      {"rdma", textOrNull(pf.rdmaDevice())},
      {"link_layer", pf.linkLayer == LinkLayer::unknown ? Json() : Json(toString(pf.linkLayer))},
      {"numa_node", pf.numaNode < 0 ? Json() : Json(pf.numaNode)},
      {"sriov_capable", pf.totalVfs > 0},
      {"vfs", pf.vfs.size()},
      {"total_vfs", pf.totalVfs},
      {"probes_vfs", pf.probesVfs},
      {"fault", faultJson(pf)}};
}

const std::string& nameOf(const Device& nic) {
  return nic.rdma.empty() ? nic.netdev() : nic.rdmaDevice();
}

Json otherJson(const Device& nic) {
  return {{"address", toString(nic.address)},
          {"name", textOrNull(nameOf(nic))},
          {"driver", textOrNull(nic.driver)},
          {"reason", whyNoPf(nic)}};
}

void writePfsJson(std::ostream& out, const Inventory& inventory,
                  const std::vector<Device>& others) {
  Json document = newDocument();
  document["iommu_present"] = inventory.iommuPresent;
  document["unsafe_interrupts"] = inventory.unsafeInterrupts;
  document["pfs"] = listJson(inventory.pfs, pfJson);
  document["other_nics"] = listJson(others, otherJson);
  writeDocument(out, document);
}

// Why no guest gets the VF; empty if it may. That of a PF applies to its VFs.
std::string quarantineOf(const PhysicalFunction& pf, const VirtualFunction& vf,
                         const Inventory& inventory) {
  const auto reasonOf = [&](const PciAddress& device) {
    const auto found =
        std::ranges::find_if(inventory.quarantined, [&](const QuarantinedDevice& each) {
          return each.device == device ||
                 std::ranges::find(each.elsewhere, device) != each.elsewhere.end();
        });
    return found == inventory.quarantined.end() ? std::string() : found->reason;
  };
  const std::string own = reasonOf(vf.address);
  const std::string reason = own.empty() ? reasonOf(pf.address) : own;
  return own.empty() && !reason.empty() ? "its PF: " + reason : reason;
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

bool isDomain(const DeviceUser& user) { return user.kind == DeviceUser::Kind::domain; }

std::vector<DeviceUser> usersOf(const VirtualFunction& vf, const DefinedUsers& users) {
  std::vector<DeviceUser> found = users.value_or(std::vector<DeviceUser>());
  std::erase_if(found, [&](const DeviceUser& user) { return user.device != vf.address; });
  return found;
}

std::string_view userKind(const DeviceUser& user) {
  return user.kind == DeviceUser::Kind::elsewhere ? "netdev"
         : isDomain(user)                         ? "domain"
                                                  : "network";
}

std::string usersText(const VirtualFunction& vf, const DefinedUsers& users) {
  std::vector<std::string> names;
  for (const DeviceUser& user : usersOf(vf, users)) {
    names.push_back(std::string(userKind(user)) + " " + user.name);
  }
  return textOrNothing(join(names, ", "));
}

Json usersJson(const VirtualFunction& vf, const DefinedUsers& users) {
  if (!users) {
    return nullptr;
  }
  return listJson(usersOf(vf, users), [](const DeviceUser& user) -> Json {
    return {{"kind", userKind(user)}, {"name", user.name}};
  });
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
  return listJson(vf.netdevs, [](const auto& netdev) -> Json {
    return {{"name", netdev.name}, {"up", netdev.up}, {"enslaved", netdev.enslaved}};
  });
}

Json peersJson(const VirtualFunction& vf) {
  return listJson(vf.groupPeers, [](const auto& peer) { return toString(peer.address); });
}

Json vfJson(const PhysicalFunction& pf, const VirtualFunction& vf, const Lease* lease,
            const DefinedUsers& users, const std::string& quarantine) {
  return {{"pf", toString(pf.address)},
          {"index", vf.index},
          {"address", toString(vf.address)},
          {"driver", textOrNull(vf.driver)},
          {"driver_override", textOrNull(vf.driverOverride)},
          {"iommu_group", valueOrNull(vf.iommuGroup)},
          {"group_peers", peersJson(vf)},
          {"netdevs", netdevsJson(vf)},
          {"representor", textOrNull(vf.representor)},
          {"rdma", textOrNull(vf.rdmaDevice())},
          {"vfio_in_use", vf.vfioInUse},
          {"vfio_user", textOrNull(vf.vfioUser)},
          {"settings_readable", vf.settingsReadable},
          {"settings", settingsJson(visibleSettings(vf))},
          {"lease", leaseJson(lease)},
          {"used_by", usersJson(vf, users)},
          {"quarantine", textOrNull(quarantine)}};
}

template <typename Visit>
void forEachVf(const Inventory& inventory, Visit visit) {
  for (const auto& pf : inventory.pfs) {
    for (const auto& vf : pf.vfs) {
      visit(pf, vf);
    }
  }
}

bool hasQuarantinedVf(const Inventory& inventory) {
  bool found = false;
  forEachVf(inventory, [&](const PhysicalFunction& pf, const VirtualFunction& vf) {
    found = found || !quarantineOf(pf, vf, inventory).empty();
  });
  return found;
}

void writeVfsJson(std::ostream& out, const Inventory& inventory, const std::vector<Lease>& leases,
                  const DefinedUsers& users) {
  Json document = newDocument();
  document["vfs"] = Json::array();
  forEachVf(inventory, [&](const PhysicalFunction& pf, const VirtualFunction& vf) {
    document["vfs"].push_back(vfJson(pf, vf, leaseOfVf(leases, pf.address, vf.index), users,
                                     quarantineOf(pf, vf, inventory)));
  });
  writeDocument(out, document);
}

void writeFaults(std::ostream& out, const Inventory& inventory) {
  bool first = true;
  for (const PhysicalFunction& pf : inventory.pfs) {
    if (const auto fault = faultOf(pf)) {
      out << (first ? "\n" : "") << "PF " << toString(pf.address) << ' ' << fault->what << "; "
          << fault->remedy << '\n';
      first = false;
    }
  }
}

void writeOthers(std::ostream& out, const std::vector<Device>& others) {
  out << (others.empty() ? "" : "\n");
  for (const Device& nic : others) {
    const std::string name = nameOf(nic);
    out << "no PF: " << toString(nic.address) << (name.empty() ? "" : " (" + printable(name) + ")")
        << ' ' << whyNoPf(nic) << '\n';
  }
}

}  // namespace

void writePfs(std::ostream& out, const Inventory& inventory, const std::vector<Device>& others,
              const Style& style) {
  if (style.json) {
    writePfsJson(out, inventory, others);
    return;
  }
  if (inventory.pfs.empty()) {
    out << "no SR-IOV capable NIC with a driver\n";
  } else {
    Table table({"PF", "NETDEV", "RDMA", "DRIVER", "LINK", "VFS", "NUMA", "MODEL", "SERIAL"});
    for (const auto& pf : inventory.pfs) {
      table.add(pfRow(pf));
    }
    table.write(out, style);
  }
  writeFaults(out, inventory);
  writeOthers(out, others);
}

void writeVfs(std::ostream& out, const Inventory& inventory, const std::vector<Lease>& leases,
              const DefinedUsers& users, const Style& style) {
  if (style.json) {
    writeVfsJson(out, inventory, leases, users);
    return;
  }
  std::vector<std::string> headings{"PF",    "INDEX",  "VF",          "DRIVER",
                                    "GROUP", "NETDEV", "MAC OR GUID", "VLAN",
                                    "TRUST", "SPOOF",  "LINK",        "LEASED TO"};
  const bool anyUser = users && !users->empty();
  if (anyUser) {
    headings.emplace_back("USED BY");
  }
  const bool anyQuarantine = hasQuarantinedVf(inventory);
  if (anyQuarantine) {
    headings.emplace_back("QUARANTINE");
  }
  Table table(headings);
  bool any = false;
  forEachVf(inventory, [&](const PhysicalFunction& pf, const VirtualFunction& vf) {
    auto row = vfRow(pf, vf, leaseOfVf(leases, pf.address, vf.index));
    if (anyUser) {
      row.emplace_back(usersText(vf, users));
    }
    if (anyQuarantine) {
      row.emplace_back(textOrNothing(quarantineOf(pf, vf, inventory)), Tint::bad);
    }
    table.add(row);
    any = true;
  });
  if (!any) {
    out << "no VFs\n";
    return;
  }
  table.write(out, style);
}

}  // namespace vfpass::report
