#include "sriov/pf_and_vfs.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "netlink/link_dump.hpp"
#include "netlink/netlink_exchange.hpp"
#include "sriov/vf_port.hpp"
#include "sysfs/kernel_write.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/pci_function.hpp"

namespace vfpass::host {
namespace {

constexpr std::uint32_t networkController = 0x02;

// The other members of a group, most of which have one. Reads what a member is when it is needed
// first.
std::vector<GroupPeer> peersOf(const Root& root, const PciAddress& vf,
                               std::vector<GroupPeer>& members) {
  std::vector<GroupPeer> peers;
  for (GroupPeer& member : members) {
    if (member.address != vf) {
      if (member.classCode == 0) {
        member = readGroupPeer(root, member.address);
      }
      peers.push_back(member);
    }
  }
  std::ranges::sort(peers);
  return peers;
}

// The same for all VFs, from the link of each function: one system call for each, where a group's
// directory takes seven.
void readGroups(const Root& root, std::vector<PhysicalFunction>& pfs) {
  std::map<PciAddress, unsigned> groups;
  std::map<unsigned, std::vector<GroupPeer>> members;
  for (const PciAddress& address : listFunctions(root)) {
    if (const auto group = readIommuGroup(root, address)) {
      groups.emplace(address, *group);
      members[*group].push_back({.address = address, .classCode = 0, .driver = {}});
    }
  }
  for (PhysicalFunction& pf : pfs) {
    for (VirtualFunction& vf : pf.vfs) {
      if (const auto group = groups.find(vf.address); group != groups.end()) {
        vf.iommuGroup = group->second;
        vf.groupPeers = peersOf(root, vf.address, members[group->second]);
      }
    }
  }
}

bool isWanted(const PciAddress& vf, const std::vector<PciAddress>* wanted) {
  return wanted == nullptr || std::ranges::find(*wanted, vf) != wanted->end();
}

std::vector<VirtualFunction> readVfs(const Root& root, const PciAddress& pf,
                                     const std::vector<PciAddress>* wanted, PfDetails details) {
  std::vector<VirtualFunction> vfs;
  for (const VfLink& link : readVfLinks(root, pf)) {
    VirtualFunction vf;
    vf.index = link.index;
    vf.address = link.address;
    if (isWanted(vf.address, wanted)) {
      const Folder folder(root, functionPath(vf.address));
      if (!folder) {
        continue;  // removed meanwhile
      }
      readDevice(folder, {.ports = Ports::netdevs}, vf);
      vf.settings.msixVectors = readVectors(folder);
      if (details == PfDetails::all) {
        readGroup(root, vf);
      }
    }
    vfs.push_back(std::move(vf));
  }
  return vfs;
}

std::vector<Device*> wantedVfs(std::vector<PhysicalFunction>& pfs,
                               const std::vector<PciAddress>* wanted) {
  std::vector<Device*> vfs;
  for (PhysicalFunction& pf : pfs) {
    for (VirtualFunction& vf : pf.vfs) {
      if (isWanted(vf.address, wanted)) {
        vfs.push_back(&vf);
      }
    }
  }
  return vfs;
}

void setSettings(const VfTable& table, PhysicalFunction& pf) {
  for (VirtualFunction& vf : pf.vfs) {
    const auto found = table.find(vf.index);
    vf.settingsReadable = found != table.end();
    if (vf.settingsReadable) {
      vf.settings = firstOf(found->second, keptSettings(vf.settings));
    }
  }
}

// Some kernels report no VF at all if their list does not fit into a message (above about 220).
constexpr std::size_t mostCertainlyReported = 200;

// One guarded process reads those of all PFs.
void readSettings(const Root& root, std::vector<PhysicalFunction>& pfs,
                  std::chrono::milliseconds deadline) {
  std::vector<PhysicalFunction*> readable;
  std::vector<VfNetdev> netdevs;
  for (PhysicalFunction& pf : pfs) {
    if (pf.uplink().index > 0) {
      readable.push_back(&pf);
      netdevs.push_back({pf.uplink().index, pf.linkLayer == LinkLayer::infiniband, pf.netdev()});
    }
  }
  auto answers = readVfTables(netdevs, deadline);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto& [table, detached] = answers[i];
    PhysicalFunction& pf = *readable[i];
    pf.netdevDetached = detached;
    if (table && !pf.vfs.empty()) {
      if (netdevs[i].infiniband) {
        readOfedFiles(root, pf.address, *table);
      }
      setSettings(*table, pf);
      pf.reportsNoVfs = table->empty() && pf.vfs.size() <= mostCertainlyReported;
    }
  }
}

// An InfiniBand PF without IPoIB netdev has no other source.
void readSettingsFromFiles(const Root& root, PhysicalFunction& pf) {
  if (pf.netdev().empty() && pf.linkLayer == LinkLayer::infiniband) {
    VfTable table;
    readOfedFiles(root, pf.address, table);
    setSettings(table, pf);
  }
}

// Whether both are PFs of one port of a card, on different buses: that of a Socket Direct card has
// one for each socket.
bool isSocketDirectPeer(const Root& root, const PhysicalFunction& pf, const std::string& serial,
                        const PciAddress& other) {
  return other != pf.address && other.function == pf.address.function &&
         std::tie(other.domain, other.bus) != std::tie(pf.address.domain, pf.address.bus) &&
         readDriver(root, other) == "mlx5_core" && !root.exists(functionPath(other) + "/physfn") &&
         !readNetdevs(root, other).empty() && readSerial(root, other) == serial;
}

void readMainPf(const Root& root, PhysicalFunction& pf) {
  if (!pf.netdev().empty() || pf.driver != "mlx5_core") {
    return;
  }
  // Read here even where serial numbers are skipped: few PFs have no netdev.
  const std::string serial = pf.serial.empty() ? readSerial(root, pf.address) : pf.serial;
  if (serial.empty()) {
    return;
  }
  const auto functions = listFunctions(root);
  const auto peer = std::ranges::find_if(functions, [&](const PciAddress& other) {
    return isSocketDirectPeer(root, pf, serial, other);
  });
  if (peer != functions.end()) {
    pf.mainPf = *peer;
  }
}

// The PFs of a card that share its slot: one for each port.
std::vector<PciAddress> readPorts(const Root& root, const PciAddress& pf) {
  constexpr std::uint8_t functions = 8;
  std::vector<PciAddress> ports;
  for (std::uint8_t function = 0; function < functions; ++function) {
    PciAddress address = pf;
    address.function = function;
    const std::string path = functionPath(address);
    if (root.exists(path) && !root.exists(path + "/physfn")) {
      ports.push_back(address);
    }
  }
  return ports;
}

// The bond that a netdev of this function is below; empty: none.
std::string bondOf(const Root& root, const PciAddress& function) {
  for (const Netdev& netdev : readNetdevs(root, function)) {
    const std::string master = functionPath(function) + "/net/" + netdev.name + "/master";
    if (const auto name = root.linkName(master); name && root.exists(master + "/bonding")) {
      return *name;
    }
  }
  return {};
}

// Found by structure: both ports are below one bond, and not both have an RDMA device.
void readLag(const Root& root, PhysicalFunction& pf) {
  RoceLag lag{bondOf(root, pf.address), {}, {}};
  if (pf.driver != "mlx5_core" || lag.bond.empty()) {
    return;
  }
  unsigned ports = 0;
  unsigned devices = 0;
  for (const PciAddress& port : readPorts(root, pf.address)) {
    if (bondOf(root, port) != lag.bond) {
      continue;
    }
    ++ports;
    const Device device = readDevice(root, port, {.driver = false, .ports = Ports::names});
    if (!device.rdma.empty()) {
      ++devices;
      lag.rdmaDevice = device.rdmaDevice();
      lag.rdmaPf = port;
    }
  }
  if (ports > 1 && devices <= 1) {
    pf.lag = lag;
  }
}

// Devices stacked on a netdev, including its bond or bridge (netdev_adjacent_sysfs_add).
std::vector<std::string> readUppers(const Root& root, const PhysicalFunction& pf) {
  constexpr std::string_view prefix = "upper_";
  std::vector<std::string> uppers;
  for (const std::string& name :
       root.list(functionPath(pf.address) + "/net/" + pf.netdev(), prefix)) {
    uppers.push_back(name.substr(prefix.size()));
  }
  std::sort(uppers.begin(), uppers.end());
  return uppers;
}

// The index in `pf0vf3`, for a VF of this PF. `c1pf0vf3` is on a BlueField's other host.
std::optional<std::uint64_t> representedVf(const std::string& port, const PciAddress& pf) {
  const std::string prefix = "pf" + std::to_string(pf.function) + "vf";
  return port.starts_with(prefix) ? parseNumber(std::string_view(port).substr(prefix.size()))
                                  : std::nullopt;
}

// In switchdev mode the netdevs of a PF are its uplink and the representors of its VFs, which are
// ports of the same switch. Nothing is read of a PF with one netdev.
void readRepresentors(const Root& root, PhysicalFunction& pf) {
  const std::string directory = functionPath(pf.address) + "/net/";
  const auto names = root.list(functionPath(pf.address) + "/net");
  const auto switchOf = [&](const std::string& name) {
    return root.readText(directory + name + "/phys_switch_id").value_or("");
  };
  for (const std::string& name : names.size() > 1 ? names : std::vector<std::string>{}) {
    const auto index =
        representedVf(root.readText(directory + name + "/phys_port_name").value_or(""), pf.address);
    const auto vf = std::ranges::find_if(
        pf.vfs, [&](const VirtualFunction& each) { return index && each.index == *index; });
    if (vf != pf.vfs.end() && switchOf(name) == switchOf(pf.netdev())) {
      vf->representor = name;
    }
  }
}

// Addresses of the PFs' netdevs, from one dump.
void readAddresses(std::vector<PhysicalFunction>& pfs, std::chrono::milliseconds deadline) {
  const auto first =
      std::ranges::find_if(pfs, [](const auto& pf) { return pf.uplink().index > 0; });
  if (first == pfs.end()) {
    return;
  }
  const ExchangePurpose purpose{first->netdev(), "reading its addresses"};
  try {
    const auto dump = dumpNetlink(NETLINK_ROUTE, addressDumpQuery(), purpose, deadline);
    for (PhysicalFunction& pf : pfs) {
      if (pf.uplink().index > 0) {
        pf.addresses = parseAddresses(dump, pf.uplink().index);
      }
    }
  } catch (const TimeoutError&) {
    throw;
  } catch (const Error&) {  // netlink is not permitted, as in readSettings
  }
}

bool isNic(const Root& root, const PciAddress& address) {
  return readClass(root, address) >> 16U == networkController ||
         readDriver(root, address) == "mlx5_core" ||
         !root.list(functionPath(address) + "/net").empty();
}

}  // namespace

std::optional<PhysicalFunction> readPfIdentity(const Root& root, const PciAddress& address,
                                               Serials serials) {
  const Folder folder(root, functionPath(address));
  if (!folder) {
    return std::nullopt;
  }
  PhysicalFunction pf;
  pf.address = address;
  pf.path = devicePath(root, address);
  readDevice(folder, {.ids = true, .numaNode = true, .ports = Ports::netdevs, .linkLayer = true},
             pf);
  if (serials == Serials::read) {
    const VitalProductData data = readVpd(root, address);
    pf.serial = data.serial;
    pf.role = managesNvlink(data, pf.vendor) ? FunctionRole::nvlinkManagement : FunctionRole::nic;
  }
  pf.hasVfFiles = hasVfFiles(root, address);
  pf.totalVfs = readSriovField(folder, "sriov_totalvfs");
  pf.vfOffset = readSriovField(folder, "sriov_offset");
  pf.vfStride = readSriovField(folder, "sriov_stride");
  pf.probesVfs = folder.readNumber("sriov_drivers_autoprobe").value_or(1) != 0;
  if (!root.isLive()) {
    const auto vectors = folder.readNumber("sriov_vf_total_msix");
    pf.totalVfVectors = vectors ? std::optional(static_cast<unsigned>(*vectors)) : std::nullopt;
  }
  readMainPf(root, pf);
  readLag(root, pf);
  return pf;
}

std::vector<PhysicalFunction> readPhysicalFunctions(const Root& root,
                                                    const std::vector<PciAddress>& addresses,
                                                    std::chrono::milliseconds netlinkDeadline,
                                                    const std::vector<PciAddress>* wanted,
                                                    PfDetails details, Serials serials) {
  const bool all = details == PfDetails::all;
  // Each PF with its VFs, from sysfs.
  std::vector<PhysicalFunction> pfs;
  for (const PciAddress& address : addresses) {
    if (auto pf = readPfIdentity(root, address, serials)) {
      pf->vfs = readVfs(root, address, wanted, details);
      readRepresentors(root, *pf);
      if (all && !pf->netdev().empty()) {
        pf->uppers = readUppers(root, *pf);
      }
      readSettingsFromFiles(root, *pf);
      pfs.push_back(std::move(*pf));
    }
  }
  // For the VFs of all PFs together: these take a process, a scan of /proc or of all functions.
  if (all) {
    const auto vfs = wantedVfs(pfs, wanted);
    readOverrides(root, vfs);
    readVfioUse(root, vfs);
  } else {
    readGroups(root, pfs);
  }
  // Over netlink, which only the running system has.
  if (root.isLive()) {
    if (all) {
      readAddresses(pfs, netlinkDeadline);
    }
    readSettings(root, pfs, netlinkDeadline);
  }
  return pfs;
}

std::vector<PciAddress> findPhysicalFunctions(const Root& root) {
  std::vector<PciAddress> found = listFunctions(root);
  std::erase_if(found, [&](const PciAddress& address) {
    return root.readNumber(functionPath(address) + "/sriov_totalvfs").value_or(0) == 0 ||
           !isNic(root, address);
  });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace vfpass::host
