#include "vfpass/host/pci_function.hpp"

#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>

#include "drivers/driver_binding.hpp"
#include "holders/holder_kinds.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/device_identity.hpp"
#include "vfpass/host/driver_modules.hpp"
#include "vfpass/host/find_holders.hpp"
#include "vfpass/host/function_reset.hpp"

namespace vfpass::host {
namespace {

constexpr int nodeLimit = 4096;
constexpr std::uint64_t sriovLimit = 65535;  // its fields have 16 bits

std::uint16_t readId(const Folder& folder, const char* file) {
  return static_cast<std::uint16_t>(folder.readNumber(file).value_or(0) & 0xffffU);
}

// "-1" where the firmware does not specify it; readNumber accepts no sign.
int readNumaNode(const Folder& folder) {
  const auto node = folder.readNumber("numa_node");
  return node && *node < nodeLimit ? static_cast<int>(*node) : -1;
}

std::optional<Netdev> readNetdev(const Folder& folder, const std::string& name) {
  const std::string path = "net/" + name;
  const auto index = folder.readNumber(path + "/ifindex");
  if (!index || *index == 0 || *index > INT32_MAX) {
    return std::nullopt;  // just removed
  }
  const bool up = (folder.readNumber(path + "/flags").value_or(0) & IFF_UP) != 0;
  return Netdev{name, static_cast<int>(*index), up,
                folder.linkTarget(path + "/master").has_value()};
}

// A representor has a name such as `pf0vf3`, `c1pf0vf3` or `pf0sf7`; an uplink has `p0` or none.
bool isRepresentor(const Folder& folder, const std::string& netdev) {
  const std::string port = folder.readText("net/" + netdev + "/phys_port_name").value_or("");
  return port.find("pf") != std::string::npos;
}

std::vector<Netdev> readNetdevs(const Folder& folder, Ports ports) {
  std::vector<Netdev> netdevs;
  for (const std::string& name : folder.list("net")) {
    if (ports == Ports::names) {
      netdevs.push_back({name});
    } else if (auto netdev = readNetdev(folder, name)) {
      netdevs.push_back(std::move(*netdev));
    }
  }
  std::ranges::stable_sort(netdevs, {}, &Netdev::index);
  if (ports == Ports::netdevs && netdevs.size() > 1) {  // reading the port name takes the RTNL
    std::stable_partition(netdevs.begin(), netdevs.end(), [&](const Netdev& netdev) {
      return !isRepresentor(folder, netdev.name);
    });
  }
  return netdevs;
}

// Of the RDMA device's first port, or of the netdev where there is no RDMA device.
LinkLayer readLinkLayer(const Folder& folder, const Device& device) {
  if (!device.rdma.empty()) {
    const auto text = folder.readText("infiniband/" + device.rdmaDevice() + "/ports/1/link_layer");
    const LinkLayer layer = text ? parseLinkLayer(trim(*text)) : LinkLayer::unknown;
    if (layer != LinkLayer::unknown) {
      return layer;
    }
  }
  if (device.netdevs.empty()) {
    return LinkLayer::unknown;
  }
  switch (folder.readNumber("net/" + device.netdev() + "/type").value_or(0)) {
    case ARPHRD_ETHER:
      return LinkLayer::ethernet;
    case ARPHRD_INFINIBAND:
      return LinkLayer::infiniband;
    default:
      return LinkLayer::unknown;
  }
}

}  // namespace

void readDevice(const Folder& folder, const WantedFacts& wanted, Device& device) {
  if (wanted.driver) {
    device.driver = folder.linkName("driver").value_or("");
  }
  if (wanted.ids) {
    device.vendor = readId(folder, "vendor");
    device.device = readId(folder, "device");
    device.classCode =
        static_cast<std::uint32_t>(folder.readNumber("class").value_or(0) & 0xffffffU);
  }
  if (wanted.subsystem) {
    device.subsystemVendor = readId(folder, "subsystem_vendor");
    device.subsystemDevice = readId(folder, "subsystem_device");
  }
  if (wanted.numaNode) {
    device.numaNode = readNumaNode(folder);
  }
  if (wanted.iommuGroup) {
    device.iommuGroup = iommuGroupIn(folder.linkName("iommu_group"));
  }
  if (wanted.ports != Ports::none) {
    device.netdevs = readNetdevs(folder, wanted.ports);
    for (const std::string& name : folder.list("infiniband")) {
      device.rdma.push_back({name});
    }
  }
  if (wanted.linkLayer) {
    device.linkLayer = readLinkLayer(folder, device);
  }
}

std::vector<VfLink> readVfLinks(const Folder& folder) {
  constexpr std::string_view prefix = "virtfn";
  std::vector<VfLink> vfs;
  for (const std::string& name : folder.list(".", prefix)) {
    const auto index = parseNumber(std::string_view(name).substr(prefix.size()));
    const auto target = folder.linkName(name);
    const auto address = target ? parsePciAddress(*target) : std::nullopt;
    if (index && *index <= sriovLimit && address) {
      vfs.push_back({static_cast<unsigned>(*index), *address});
    }
  }
  std::ranges::sort(vfs, {}, &VfLink::index);
  return vfs;
}

unsigned readSriovField(const Folder& folder, const std::string& file) {
  return static_cast<unsigned>(std::min(folder.readNumber(file).value_or(0), sriovLimit));
}

LinkLayer parseLinkLayer(std::string_view text) {
  return text == "InfiniBand" ? LinkLayer::infiniband
         : text == "Ethernet" ? LinkLayer::ethernet
                              : LinkLayer::unknown;
}

namespace {

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

bool isDisplayOrAccelerator(std::uint32_t classCode) {
  return classCode >> 16U == 0x03U || classCode >> 16U == 0x12U;
}

std::optional<PciAddress> readPfOf(const Root& root, const PciAddress& function) {
  const auto pf = root.linkName(functionPath(function) + "/physfn");
  return pf ? parsePciAddress(*pf) : std::nullopt;
}

std::string readDriver(const Root& root, const PciAddress& function) {
  return root.linkName(functionPath(function) + "/driver").value_or("");
}

Device readDevice(const Root& root, const PciAddress& address, const WantedFacts& wanted) {
  Device device;
  device.address = address;
  readDevice(Folder(root, functionPath(address)), wanted, device);
  return device;
}

std::vector<Netdev> readNetdevs(const Root& root, const PciAddress& function) {
  return readDevice(root, function, {.driver = false, .ports = Ports::netdevs}).netdevs;
}

bool hasVfFiles(const Root& root, const PciAddress& pf) {
  return root.exists(functionPath(pf) + "/sriov");
}

std::optional<unsigned> iommuGroupIn(const std::optional<std::string>& link) {
  const auto number = link ? parseNumber(*link) : std::nullopt;
  return number && *number <= INT32_MAX ? std::optional(static_cast<unsigned>(*number))
                                        : std::nullopt;
}

std::optional<unsigned> readIommuGroup(const Root& root, const PciAddress& function) {
  return iommuGroupIn(root.linkName(functionPath(function) + "/iommu_group"));
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
  return readVfLinks(Folder(root, functionPath(pf)));
}

std::string devicePath(const Root& root, const PciAddress& address) {
  constexpr std::string_view marker = "/devices/";
  const std::string target = root.linkTarget(functionPath(address)).value_or("");
  const auto start = target.find(marker);
  return start == std::string::npos ? std::string{} : target.substr(start + marker.size());
}

void readGroup(const Root& root, Device& device) {
  device.iommuGroup = readIommuGroup(root, device.address);
  if (device.iommuGroup) {
    device.groupPeers = readGroupPeers(root, device.address, *device.iommuGroup);
  }
}

// One guarded process reads the overrides of all devices.
void readOverrides(const Root& root, const std::vector<Device*>& devices) {
  std::vector<PciAddress> addresses;
  std::ranges::transform(devices, std::back_inserter(addresses), &Device::address);
  const auto overrides = readDriverOverrides(root, addresses, deadlines::driverOverride);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i]->driverOverride = overrides[i].value_or("");
    devices[i]->locked = !overrides[i] && hasDriverOverride(root, addresses[i]);
  }
}

// Reads /proc once for all devices, and not at all if none is on VFIO.
void readVfioUse(const Root& root, const std::vector<Device*>& devices) {
  std::optional<VfioUsers> users;
  for (Device* device : devices) {
    if (!isVfioDriver(device->driver)) {
      continue;
    }
    if (!users) {
      users = readVfioUsers(root);
    }
    const auto user = vfioUserOf(root, device->address, *users);
    device->vfioInUse = user.has_value();
    device->vfioUser = user.value_or("");
  }
}

// None for a root bus, which cannot be reset (pci_parent_bus_reset).
std::vector<PciAddress> readBusPeers(const Root& root, const PciAddress& function) {
  const std::string path = devicePath(root, function);
  if (std::ranges::count(path, '/') < 2) {
    return {};
  }
  const std::string own = toString(function);
  auto peers = listFunctions(root, own.substr(0, own.rfind(':') + 1));
  std::erase(peers, function);
  return peers;
}

namespace {

void readReset(const Root& root, Device& function) {
  function.resetMethods = readResetMethods(root, functionPath(function.address));
  if (function.resetMethods && !resetsAlone(*function.resetMethods)) {
    for (const PciAddress& peer : readBusPeers(root, function.address)) {
      function.busPeers.push_back(readGroupPeer(root, peer));
    }
  }
}

}  // namespace

std::optional<Device> readPciFunction(const Root& root, const PciAddress& address) {
  const Folder folder(root, functionPath(address));
  if (!folder) {
    return std::nullopt;
  }
  Device function;
  function.address = address;
  function.path = devicePath(root, address);
  readDevice(folder, {.ids = true, .numaNode = true, .ports = Ports::netdevs}, function);
  function.serial = readSerial(root, address);
  function.bootVga = folder.readNumber("boot_vga").value_or(0) != 0;
  function.vfCount = static_cast<unsigned>(readVfLinks(folder).size());
  function.physicalFunction = readPfOf(root, address);
  readGroup(root, function);
  readReset(root, function);
  readOverrides(root, {&function});
  readVfioUse(root, {&function});
  // Much of the host may be below a bridge, and a bridge is refused in any case.
  if (!isBridge(function) && !function.path.empty()) {
    function.uses = readBlockUses(root, function.path);
  }
  if (!function.physicalFunction) {  // a VF is never leased as a function
    function.vfioDriver = bestVfioDriver(root, functionPath(address));
  }
  return function;
}

}  // namespace vfpass::host
