#include "vfpass/host/soft_roce_links.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>

#include "netlink/netlink_exchange.hpp"
#include "netlink/netlink_message.hpp"
#include "netlink/rdma_message.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/driver_modules.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t longestLinkName = 64;  // IB_DEVICE_NAME_MAX

std::string devicePath(const std::string& name) { return "sys/class/infiniband/" + name; }

std::vector<NumberedDevice> numberedDevices(milliseconds deadline) {
  const ExchangePurpose purpose{"RDMA devices", "listing"};
  const std::string dump = dumpNetlink(NETLINK_RDMA, rdmaDevicesQuery(), purpose, deadline);
  if (const int error = dumpError(dump); error != 0) {
    throw Error("cannot list RDMA devices: " + errnoText(error));
  }
  return parseRdmaDevices(dump);
}

// Skips the query where there is no device, because it would load ib_core.
void addNumbers(std::vector<RdmaLink>& links, milliseconds deadline) {
  if (links.empty()) {
    return;
  }
  for (const auto& device : numberedDevices(deadline)) {
    const auto link = std::ranges::find(links, device.name, &RdmaLink::name);
    if (link != links.end()) {
      link->number = device.number;
    }
  }
}

std::optional<RdmaLink> findLink(const Root& root, const std::string& name, milliseconds deadline) {
  const auto links = readRdmaLinks(root, deadline);
  const auto found = std::ranges::find(links, name, &RdmaLink::name);
  return found == links.end() ? std::nullopt : std::optional(*found);
}

// Best effort: a built-in driver need not be loaded, and in a sandboxed unit only the kernel itself
// can load modules, which it does for a link of type rxe. Without a configured modprobe, the kernel
// does not load the checksum module that rdma_rxe requests from the crypto layer.
void loadDriver(const Root& root, milliseconds deadline) {
  for (const char* module : {"crc32_generic", "rdma_rxe"}) {
    if (root.exists(std::string("sys/module/") + module)) {
      continue;
    }
    try {
      loadModule(module, deadline);
    } catch (const Error&) {
      continue;
    }
  }
}

std::string softRoceRemedy(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return "run as root, outside a container";
    case EINVAL:
      return "try `modprobe rdma_rxe`: this kernel may lack SoftRoCE (CONFIG_RDMA_RXE)";
    case ENOENT:
      return "load the checksum module that rdma_rxe needs: `modprobe crc32_generic`";
    case EEXIST:
    case ENFILE:
      return "list the existing links with `rdma link`";
    default:
      return "check the kernel log (dmesg)";
  }
}

}  // namespace

std::vector<RdmaLink> readRdmaLinks(const Root& root) {
  std::vector<RdmaLink> links;
  for (const auto& name : root.list("sys/class/infiniband")) {
    RdmaLink link;
    link.name = name;
    const auto netdev = root.readText(devicePath(name) + "/parent", longestLinkName);
    link.softRoce = netdev.has_value() && !root.exists(devicePath(name) + "/device");
    link.netdev = link.softRoce ? *netdev : "";
    links.push_back(std::move(link));
  }
  return links;
}

std::vector<RdmaLink> readRdmaLinks(const Root& root, milliseconds deadline) {
  std::vector<RdmaLink> links = readRdmaLinks(root);
  if (root.isLive()) {
    addNumbers(links, deadline);
  }
  return links;
}

std::string softRoceFault(const Root& root, const std::string& netdev) {
  const std::string path = "sys/class/net/" + netdev;
  if (!root.exists(path)) {
    return "no netdev " + printable(netdev);
  }
  // rdma_rxe refuses a VLAN device with EPERM, which is misleading.
  const auto event = root.readText(path + "/uevent").value_or("");
  const auto lines = splitLines(event);
  if (std::ranges::find(lines, "DEVTYPE=vlan") != lines.end()) {
    return "netdev " + printable(netdev) + " is a VLAN; SoftRoCE only works on the device below it";
  }
  const auto type = root.readNumber(path + "/type");
  constexpr unsigned ethernet = 1;    // ARPHRD_ETHER
  constexpr unsigned loopback = 772;  // ARPHRD_LOOPBACK
  return type && *type != ethernet && *type != loopback
             ? "netdev " + printable(netdev) + " is not an Ethernet device"
             : "";
}

std::uint32_t addSoftRoceLink(const Root& root, const std::string& name, const std::string& netdev,
                              milliseconds deadline) {
  const ExchangePurpose purpose{"SoftRoCE link " + name, "creating it on " + netdev};
  loadDriver(root, deadline);
  requireChange(NETLINK_RDMA, softRoceAddition(name, netdev), purpose, deadline, softRoceRemedy);
  const auto link = findLink(root, name, deadline);
  if (!link || !link->number) {
    throw Error(purpose.object + ": " + purpose.verb + " had no effect: it does not exist",
                "check the kernel log (dmesg)");
  }
  if (!link->softRoce || link->netdev != netdev) {
    removeSoftRoceLink(root, *link, deadline);
    throw Error(purpose.object + ": it was created on netdev " + printable(link->netdev) +
                    " and removed again",
                "check whether another program renames netdevs (udev)");
  }
  return *link->number;
}

void removeSoftRoceLink(const Root& root, const RdmaLink& link, milliseconds deadline) {
  const ExchangePurpose purpose{"SoftRoCE link " + link.name, "removing it"};
  const auto exists = [&] {
    const auto links = readRdmaLinks(root, deadline);
    return std::ranges::find(links, link.number, &RdmaLink::number) != links.end();
  };
  if (!link.number || !exists()) {
    return;
  }
  requireChange(NETLINK_RDMA, rdmaLinkRemoval(*link.number), purpose, deadline, softRoceRemedy);
  if (exists()) {
    throw Error(purpose.object + ": " + purpose.verb + " had no effect: it still exists",
                "check the kernel log (dmesg)");
  }
}

}  // namespace vfpass::host
