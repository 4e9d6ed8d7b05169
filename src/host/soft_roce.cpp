#include "vfpass/host/soft_roce.hpp"

#include <linux/netlink.h>

#include <algorithm>
#include <cerrno>

#include "load_module.hpp"
#include "netlink_dump.hpp"
#include "netlink_exchange.hpp"
#include "netlink_reply.hpp"
#include "rdma_message.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::host {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t longestName = 64;  // IB_DEVICE_NAME_MAX

std::string devicePath(const std::string& name) { return "sys/class/infiniband/" + name; }

std::vector<NumberedDevice> numberedDevices(milliseconds deadline) {
  const ExchangePurpose purpose{"RDMA devices", "listing"};
  const std::string dump = dumpNetlink(NETLINK_RDMA, rdmaDevicesQuery(), purpose, deadline);
  if (const int error = dumpError(dump); error != 0) {
    throw Error("listing the RDMA devices failed: " + errnoText(error));
  }
  return parseRdmaDevices(dump);
}

// Asking over netlink would load ib_core, so nobody asks where there is no device.
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

// Best effort: what is built in cannot be loaded and need not be, and inside a sandboxed unit only
// the kernel itself may load modules, which it does for a link of type rxe. It does not load the
// checksum that rdma_rxe asks the crypto layer for where no modprobe is set up.
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

std::string remedyFor(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return "run it as root, outside a container";
    case EINVAL:
      return "this kernel may have no SoftRoCE (CONFIG_RDMA_RXE): try `modprobe rdma_rxe`";
    case ENOENT:
      return "load what rdma_rxe needs: `modprobe crc32_generic`";
    case EEXIST:
    case ENFILE:
      return "`rdma link` shows the links that exist";
    default:
      return "the kernel log (dmesg) may say more";
  }
}

void change(const std::string& request, const ExchangePurpose& purpose, milliseconds deadline) {
  const auto answer =
      parseAcknowledgement(exchangeNetlink(NETLINK_RDMA, request, purpose, deadline));
  const std::string what = purpose.object + ": " + purpose.verb + " failed: ";
  if (!answer) {
    throw Error(what + "the kernel's reply makes no sense");
  }
  if (answer->error != 0) {
    const std::string words = answer->message.empty() ? "" : ", the driver says: ";
    throw Error(what + errnoText(answer->error) + words + answer->message,
                remedyFor(answer->error));
  }
}

}  // namespace

std::vector<RdmaLink> readRdmaLinks(const Root& root) {
  std::vector<RdmaLink> links;
  for (const auto& name : root.list("sys/class/infiniband")) {
    RdmaLink link;
    link.name = name;
    const auto netdev = root.readText(devicePath(name) + "/parent", longestName);
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
    return "there is no netdev " + printable(netdev);
  }
  // rdma_rxe refuses a VLAN device with EPERM, which looks like something else.
  const auto event = root.readText(path + "/uevent").value_or("");
  const auto lines = splitLines(event);
  if (std::ranges::find(lines, "DEVTYPE=vlan") != lines.end()) {
    return "netdev " + printable(netdev) +
           " is a VLAN, and SoftRoCE takes the device below it only";
  }
  const auto type = root.readNumber(path + "/type");
  constexpr unsigned ethernet = 1;    // ARPHRD_ETHER
  constexpr unsigned loopback = 772;  // ARPHRD_LOOPBACK
  return type && *type != ethernet && *type != loopback
             ? "netdev " + printable(netdev) + " is no Ethernet device"
             : "";
}

std::uint32_t addSoftRoceLink(const Root& root, const std::string& name, const std::string& netdev,
                              milliseconds deadline) {
  const ExchangePurpose purpose{"SoftRoCE link " + name, "making it on " + netdev};
  loadDriver(root, deadline);
  change(softRoceAddition(name, netdev), purpose, deadline);
  const auto link = findLink(root, name, deadline);
  if (!link || !link->number) {
    throw Error(purpose.object + ": " + purpose.verb + " had no effect: it is not there",
                "the kernel log (dmesg) may say more");
  }
  if (!link->softRoce || link->netdev != netdev) {
    removeSoftRoceLink(root, *link, deadline);
    throw Error(purpose.object + ": it reads back on netdev " + printable(link->netdev) +
                    ", and was removed again",
                "another program may rename netdevs (udev)");
  }
  return *link->number;
}

void removeSoftRoceLink(const Root& root, const RdmaLink& link, milliseconds deadline) {
  const ExchangePurpose purpose{"SoftRoCE link " + link.name, "removing it"};
  const auto isThere = [&] {
    const auto links = readRdmaLinks(root, deadline);
    return std::ranges::find(links, link.number, &RdmaLink::number) != links.end();
  };
  if (!link.number || !isThere()) {
    return;
  }
  change(rdmaLinkRemoval(*link.number), purpose, deadline);
  if (isThere()) {
    throw Error(purpose.object + ": " + purpose.verb + " had no effect: it is still there",
                "the kernel log (dmesg) may say more");
  }
}

}  // namespace vfpass::host
