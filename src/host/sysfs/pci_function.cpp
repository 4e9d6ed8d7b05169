#include "sysfs/pci_function.hpp"

#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>

#include "drivers/driver_binding.hpp"
#include "holders/block_holders.hpp"
#include "vfpass/base/driver_name.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/deadlines.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/function_reset.hpp"
#include "vfpass/host/vfio_driver_match.hpp"
#include "vfpass/host/vfio_users.hpp"
#include "vfpass/host/vital_product_data.hpp"

namespace vfpass::host {
namespace {

constexpr unsigned vfLimit = 65535;  // SR-IOV's TotalVFs is a 16-bit field

std::optional<Netdev> readNetdev(const Root& root, const std::string& path,
                                 const std::string& name) {
  const auto index = root.readNumber(path + "/ifindex");
  if (!index || *index == 0 || *index > INT32_MAX) {
    return std::nullopt;
  }
  Netdev netdev;
  netdev.name = name;
  netdev.index = static_cast<int>(*index);
  netdev.up = (root.readNumber(path + "/flags").value_or(0) & IFF_UP) != 0;
  netdev.enslaved = root.exists(path + "/master");
  return netdev;
}

// A representor has a name such as `pf0vf3`, `c1pf0vf3` or `pf0sf7`; an uplink has `p0` or none.
bool isRepresentor(const Root& root, const std::string& path) {
  const std::string port = root.readText(path + "/phys_port_name").value_or("");
  return port.find("pf") != std::string::npos;
}

std::vector<PciAddress> functionsIn(const Root& root, const std::string& directory,
                                    std::string_view prefix) {
  std::vector<PciAddress> functions;
  for (const std::string& name : root.list(directory, prefix)) {
    if (const auto address = parsePciAddress(name)) {
      functions.push_back(*address);
    }
  }
  return functions;
}

}  // namespace

std::string functionPath(const PciAddress& function) {
  return "sys/bus/pci/devices/" + toString(function);
}

std::string driverPath(const std::string& driver) {
  if (!isDriverName(driver)) {
    throw Error("\"" + printable(driver.substr(0, 63)) + "\": invalid PCI driver name");
  }
  return "sys/bus/pci/drivers/" + driver;
}

std::vector<PciAddress> listFunctions(const Root& root, std::string_view prefix) {
  return functionsIn(root, "sys/bus/pci/devices", prefix);
}

std::uint32_t readClass(const Root& root, const PciAddress& function) {
  return static_cast<std::uint32_t>(root.readNumber(functionPath(function) + "/class").value_or(0) &
                                    0xffffffU);
}

std::optional<PciAddress> readPfOf(const Root& root, const PciAddress& function) {
  const auto pf = root.linkName(functionPath(function) + "/physfn");
  return pf ? parsePciAddress(*pf) : std::nullopt;
}

std::string readDriver(const Root& root, const PciAddress& function) {
  return root.linkName(functionPath(function) + "/driver").value_or("");
}

std::vector<Netdev> readNetdevs(const Root& root, const PciAddress& function) {
  const std::string directory = functionPath(function) + "/net";
  std::vector<Netdev> netdevs;
  for (const std::string& name : root.list(directory)) {
    if (auto netdev = readNetdev(root, directory + "/" + name, name)) {
      netdevs.push_back(std::move(*netdev));
    }
  }
  std::ranges::sort(netdevs, {}, &Netdev::index);
  if (netdevs.size() > 1) {  // read the port name only if needed: reading it takes the RTNL
    std::stable_partition(netdevs.begin(), netdevs.end(), [&](const Netdev& netdev) {
      return !isRepresentor(root, directory + "/" + netdev.name);
    });
  }
  return netdevs;
}

std::vector<RdmaDevice> readRdmaDevices(const Root& root, const PciAddress& function) {
  std::vector<RdmaDevice> devices;
  for (const std::string& name : root.list(functionPath(function) + "/infiniband")) {
    devices.push_back({name});
  }
  return devices;
}

LinkLayer readLinkLayer(const Root& root, const PciAddress& function) {
  const std::string path = functionPath(function);
  if (const auto rdma = readRdmaDevices(root, function); !rdma.empty()) {
    const auto layer =
        root.readText(path + "/infiniband/" + rdma.front().name + "/ports/1/link_layer");
    if (layer == "InfiniBand") {
      return LinkLayer::infiniband;
    }
    if (layer == "Ethernet") {
      return LinkLayer::ethernet;
    }
  }
  const auto netdevs = readNetdevs(root, function);
  if (netdevs.empty()) {
    return LinkLayer::unknown;
  }
  switch (root.readNumber(path + "/net/" + netdevs.front().name + "/type").value_or(0)) {
    case ARPHRD_ETHER:
      return LinkLayer::ethernet;
    case ARPHRD_INFINIBAND:
      return LinkLayer::infiniband;
    default:
      return LinkLayer::unknown;
  }
}

bool hasVfFiles(const Root& root, const PciAddress& pf) {
  return root.exists(functionPath(pf) + "/sriov");
}

std::optional<unsigned> readIommuGroup(const Root& root, const PciAddress& function) {
  const auto name = root.linkName(functionPath(function) + "/iommu_group");
  const auto number = name ? parseNumber(*name) : std::nullopt;
  if (!number || *number > INT32_MAX) {
    return std::nullopt;
  }
  return static_cast<unsigned>(*number);
}

GroupPeer readGroupPeer(const Root& root, const PciAddress& address) {
  return {address, readClass(root, address), readDriver(root, address)};
}

std::vector<GroupPeer> readGroupPeers(const Root& root, const PciAddress& function,
                                      unsigned group) {
  auto addresses =
      functionsIn(root, "sys/kernel/iommu_groups/" + std::to_string(group) + "/devices", {});
  std::erase(addresses, function);
  std::ranges::sort(addresses);
  std::vector<GroupPeer> peers;
  for (const PciAddress& address : addresses) {
    peers.push_back(readGroupPeer(root, address));
  }
  return peers;
}

std::vector<VfLink> readVfLinks(const Root& root, const PciAddress& pf) {
  constexpr std::string_view prefix = "virtfn";
  const std::string path = functionPath(pf);
  std::vector<VfLink> vfs;
  for (const std::string& name : root.list(path, prefix)) {
    const auto index = parseNumber(std::string_view(name).substr(prefix.size()));
    const auto target = root.linkName(path + "/" + name);
    const auto address = target ? parsePciAddress(*target) : std::nullopt;
    if (index && *index <= vfLimit && address) {
      vfs.push_back({static_cast<unsigned>(*index), *address});
    }
  }
  std::ranges::sort(vfs, {}, &VfLink::index);
  return vfs;
}

std::string devicePath(const Root& root, const PciAddress& address) {
  constexpr std::string_view marker = "/devices/";
  const std::string target = root.linkTarget(functionPath(address)).value_or("");
  const auto start = target.find(marker);
  return start == std::string::npos ? std::string{} : target.substr(start + marker.size());
}

std::uint16_t readIdentifier(const Root& root, const std::string& path) {
  return static_cast<std::uint16_t>(root.readNumber(path).value_or(0) & 0xffffU);
}

int readNumaNode(const Root& root, const std::string& path) {
  // "-1" where the firmware does not specify it; readNumber rejects the sign.
  const auto node = root.readNumber(path + "/numa_node");
  return node && *node < 4096 ? static_cast<int>(*node) : -1;
}

namespace {

void readIdentity(const Root& root, const std::string& path, Device& function) {
  function.path = devicePath(root, function.address);
  function.vendor = readIdentifier(root, path + "/vendor");
  function.device = readIdentifier(root, path + "/device");
  function.classCode = readClass(root, function.address);
  function.serial = readSerial(root, function.address);
  function.numaNode = readNumaNode(root, path);
  function.bootVga = root.readNumber(path + "/boot_vga").value_or(0) != 0;
  function.vfCount = static_cast<unsigned>(readVfLinks(root, function.address).size());
  function.physicalFunction = readPfOf(root, function.address);
}

void readIsolation(const Root& root, Device& function) {
  function.iommuGroup = readIommuGroup(root, function.address);
  if (!function.iommuGroup) {
    return;
  }
  function.groupPeers = readGroupPeers(root, function.address, *function.iommuGroup);
}

// Other functions on the same bus. None for a root bus, which cannot be reset
// (pci_parent_bus_reset).
void readBusPeers(const Root& root, Device& function) {
  const bool onRootBus = std::ranges::count(function.path, '/') < 2;
  const std::string own = toString(function.address);
  const std::string bus = own.substr(0, own.rfind(':') + 1);
  for (const PciAddress& peer : listFunctions(root, bus)) {
    if (!onRootBus && peer != function.address) {
      function.busPeers.push_back({peer, readClass(root, peer), readDriver(root, peer)});
    }
  }
}

void readReset(const Root& root, Device& function) {
  function.resetMethods = readResetMethods(root, functionPath(function.address));
  if (function.resetMethods && !resetsAlone(*function.resetMethods)) {
    readBusPeers(root, function);
  }
}

void readUse(const Root& root, Device& function) {
  function.driver = readDriver(root, function.address);
  const auto override =
      readDriverOverrides(root, {function.address}, deadlines::driverOverride).front();
  function.driverOverride = override.value_or("");
  function.locked = !override && hasDriverOverride(root, function.address);
  function.netdevs = readNetdevs(root, function.address);
  // Much of the host may be below a bridge, and a bridge is refused in any case.
  if (!isBridge(function) && !function.path.empty()) {
    function.uses = readBlockUses(root, function.path);
  }
  if (isVfioDriver(function.driver)) {
    const auto user = vfioUserOf(root, function.address, readVfioUsers(root));
    function.vfioInUse = user.has_value();
    function.vfioUser = user.value_or("");
  }
}

}  // namespace

std::optional<Device> readPciFunction(const Root& root, const PciAddress& address) {
  const std::string path = functionPath(address);
  if (!root.exists(path)) {
    return std::nullopt;
  }
  Device function;
  function.address = address;
  readIdentity(root, path, function);
  readIsolation(root, function);
  readReset(root, function);
  readUse(root, function);
  if (!function.physicalFunction) {  // a VF is never leased as a function
    function.vfioDriver = bestVfioDriver(root, functionPath(address));
  }
  return function;
}

}  // namespace vfpass::host
