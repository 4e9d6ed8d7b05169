#include "sysfs/pci_function.hpp"

#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

constexpr std::size_t longestDriverName = 63;
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

}  // namespace

std::string functionPath(const PciAddress& function) {
  return "sys/bus/pci/devices/" + toString(function);
}

bool isDriverName(std::string_view name) {
  constexpr std::string_view allowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return !name.empty() && name.size() <= longestDriverName &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

std::string driverPath(const std::string& driver) {
  if (!isDriverName(driver)) {
    throw Error("\"" + printable(driver.substr(0, longestDriverName)) +
                "\": invalid PCI driver name");
  }
  return "sys/bus/pci/drivers/" + driver;
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
  std::sort(netdevs.begin(), netdevs.end(),
            [](const Netdev& one, const Netdev& other) { return one.index < other.index; });
  if (netdevs.size() > 1) {  // read the port name only if needed: reading it takes the RTNL
    std::stable_partition(netdevs.begin(), netdevs.end(), [&](const Netdev& netdev) {
      return !isRepresentor(root, directory + "/" + netdev.name);
    });
  }
  return netdevs;
}

std::string readRdmaDevice(const Root& root, const PciAddress& function) {
  const auto names = root.list(functionPath(function) + "/infiniband");
  return names.empty() ? std::string{} : names.front();
}

LinkLayer readLinkLayer(const Root& root, const PciAddress& function) {
  const std::string path = functionPath(function);
  if (const std::string rdma = readRdmaDevice(root, function); !rdma.empty()) {
    const auto layer = root.readText(path + "/infiniband/" + rdma + "/ports/1/link_layer");
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

std::vector<PciAddress> readGroupPeers(const Root& root, const PciAddress& function,
                                       unsigned group) {
  std::vector<PciAddress> peers;
  const std::string directory = "sys/kernel/iommu_groups/" + std::to_string(group) + "/devices";
  for (const std::string& name : root.list(directory)) {
    const auto address = parsePciAddress(name);
    if (address && *address != function) {
      peers.push_back(*address);
    }
  }
  std::sort(peers.begin(), peers.end());
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
  std::sort(vfs.begin(), vfs.end(),
            [](const VfLink& one, const VfLink& other) { return one.index < other.index; });
  return vfs;
}

}  // namespace vfpass::host
