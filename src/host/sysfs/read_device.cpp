#include "vfpass/host/read_device.hpp"

#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>

#include "sysfs/pci_function.hpp"
#include "vfpass/base/text.hpp"

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

}  // namespace vfpass::host
