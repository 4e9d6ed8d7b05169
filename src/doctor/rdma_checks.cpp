#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <tuple>

#include "check.hpp"
#include "remedies.hpp"
#include "vfpass/arp_policy.hpp"
#include "vfpass/base/default_deadlines.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"
#include "vfpass/host/link_settings.hpp"
#include "vfpass/port_fault.hpp"

namespace vfpass::doctor {
namespace {

// Whether a loaded module was built outside the kernel's tree: `O` in its taint flags, which others
// can accompany (kernel/module: module_flags_taint). Not its version: OFED's mlx5_core has one, its
// mlx5_ib has none. nullopt for a module that is built in.
std::optional<bool> isOutOfTree(const View& view, const std::string& module) {
  const auto taint = view.root().readText("sys/module/" + module + "/taint");
  return taint ? std::optional(taint->find('O') != std::string::npos) : std::nullopt;
}

std::string originOf(const View& view, const std::string& module) {
  const auto outside = isOutOfTree(view, module);
  const std::string version =
      view.root().readText("sys/module/" + module + "/version").value_or("");
  return !outside    ? "unknown"
         : !*outside ? "the kernel's own"
                     : "out of tree" + (version.empty() ? "" : " (OFED " + version + ")");
}

std::string withoutMlx5(const View& view) {
  return view.moduleLoaded("mlx5_core") ? "" : "mlx5_core is not loaded";
}

void checkOfed(const View& view, Results& results) {
  const std::string expected = "mlx5_core and mlx5_ib both from OFED, or both the kernel's own";
  const std::string core = originOf(view, "mlx5_core");
  const auto coreOutside = isOutOfTree(view, "mlx5_core");
  const auto ibOutside = isOutOfTree(view, "mlx5_ib");
  const std::string both = "mlx5_core: " + core + "; mlx5_ib: " + originOf(view, "mlx5_ib");
  if (!view.moduleLoaded("mlx5_ib")) {
    results.failed("", expected, "mlx5_core: " + core + "; mlx5_ib not loaded", "modprobe mlx5_ib");
  } else if (!coreOutside || !ibOutside) {
    results.notObservable("", expected, both,
                          "cat /sys/module/mlx5_core/taint /sys/module/mlx5_ib/taint");
  } else if (*coreOutside != *ibOutside) {
    results.failed("", expected, both,
                   rebuildInitramfs(view) +
                       ", which may hold a module of the other release, then reboot; if that does "
                       "not help, reinstall OFED for this kernel");
  } else {
    results.passed("", expected, core);
  }
}

// The PF of the same port of a Socket Direct card, as in PhysicalFunction::mainPf.
std::optional<PciAddress> mainPfOf(const View& view, const Device& pf) {
  for (const std::size_t number : view.pfs()) {
    const Device& other = view.function(number);
    if (pf.driver == "mlx5_core" && other.driver == "mlx5_core" && !pf.serial.empty() &&
        other.serial == pf.serial && other.address.function == pf.address.function &&
        std::tie(other.address.domain, other.address.bus) !=
            std::tie(pf.address.domain, pf.address.bus) &&
        !other.netdevs.empty()) {
      return other.address;
    }
  }
  return std::nullopt;
}

bool hasDetachedNetdev(const View& view, const Device& pf) {
  return std::ranges::any_of(pf.netdevs, [&](const Netdev& netdev) {
    const auto answer = view.answer("detached/" + netdev.name, [&]() -> std::optional<std::string> {
      try {
        return host::isNetdevDetached({netdev.index, netdev.name}, deadlines::doctorNetlink) ? "1"
                                                                                             : "0";
      } catch (const Error&) {
        return std::nullopt;
      }
    });
    return answer == "1";
  });
}

std::optional<PortFault> faultOf(const View& view, const Device& device) {
  PhysicalFunction pf;
  static_cast<Device&>(pf) = device;
  pf.linkLayer = layerOf(device);
  pf.netdevDetached = hasDetachedNetdev(view, device);
  pf.hasVfFiles = view.root().exists(View::pathOf(device, "sriov"));
  pf.mainPf = device.netdevs.empty() ? mainPfOf(view, device) : std::nullopt;
  return faultOfPort(pf);
}

void checkNetdev(const View& view, Results& results) {
  const std::string expected = "a netdev on the host, or OFED's files for InfiniBand VFs";
  for (const std::size_t number : view.pfs()) {
    const Device& pf = view.function(number);
    const auto fault = faultOf(view, pf);
    if (pf.totalVfs == 0) {
      continue;
    }
    if (fault) {
      results.failedIfUsed(view.uses(number), nameOf(pf), expected, "it " + fault->what,
                           fault->remedy);
    } else {
      results.passed(nameOf(pf), expected, pf.netdevs.empty() ? "OFED's files" : pf.netdev());
    }
  }
}

std::string withoutVfs(const View& view) {
  const auto hasVfs = [](const Device& pf) { return pf.totalVfs > 0; };
  return unlessAnyPf(view, hasVfs, "no PF with SR-IOV");
}

// What is missing where the kernel shows no RDMA port of a NIC.
std::string remedyWithoutRdmaPort(const View& view, const Device& pf) {
  if (const auto fault = faultOf(view, pf)) {
    return fault->remedy;
  }
  if (pf.driver == "mlx5_core" && !view.moduleLoaded("mlx5_ib")) {
    return "modprobe mlx5_ib";
  }
  return "load the RDMA driver for " + printable(pf.driver) +
         " (rdma-core does at boot); rdma link lists the ports";
}

void checkLinkType(const View& view, Results& results) {
  for (const Requirement& requirement : view.requirements().vfs) {
    const Device* pf = findFunction(view.topology(), requirement.pf);
    if (pf == nullptr || (!requirement.infiniband && !requirement.vlan)) {
      continue;
    }
    const std::string subject = requirement.vm + ", " + requirement.entry;
    const std::string expected =
        requirement.infiniband ? "infiniband: it has GUIDs" : "ethernet: it has a VLAN";
    const LinkLayer wanted = requirement.infiniband ? LinkLayer::infiniband : LinkLayer::ethernet;
    const LinkLayer layer = layerOf(*pf);
    if (layer == LinkLayer::unknown) {
      results.notObservable(subject, expected, nameOf(*pf) + " has no RDMA port",
                            remedyWithoutRdmaPort(view, *pf));
    } else if (layer != wanted) {
      results.failed(subject, expected, nameOf(*pf) + " is " + std::string(toString(layer)),
                     linkTypeRemedy(view, *pf, wanted));
    } else {
      results.passed(subject, expected, std::string(toString(layer)));
    }
  }
}

std::string withoutTyped(const View& view) {
  return std::ranges::any_of(view.requirements().vfs,
                             [](const Requirement& requirement) {
                               return requirement.infiniband || requirement.vlan;
                             })
             ? ""
             : "no mapping sets GUIDs or a VLAN";
}

std::string withoutUsedPf(const View& view) {
  const std::string reason = withoutPf(view);
  return reason.empty() && usedPfs(view).empty() ? "no NIC in use" : reason;
}

std::string linkState(const Device& pf) {
  if (const RdmaPort* port = pf.rdmaPort()) {
    return "port " + toLower(port->state);
  }
  return pf.netdevs.empty() ? "no netdev" : pf.netdev() + " down";
}

// An InfiniBand port needs no netdev to become active; one that is INIT waits for a subnet manager.
std::string linkRemedy(const View& view, const Device& pf) {
  if (layerOf(pf) == LinkLayer::infiniband) {
    return linkState(pf) == "port init" ? "start a subnet manager for this fabric"
                                        : "check cable and switch";
  }
  if (pf.netdevs.empty()) {
    return remedyWithoutRdmaPort(view, pf);
  }
  const Netdev& netdev = pf.netdevs.front();
  return netdev.up ? "check cable, transceiver and switch: ethtool " + shellArgument(netdev.name)
                   : "ip link set dev " + shellArgument(netdev.name) +
                         " up  # then check cable and switch";
}

void checkLink(const View& view, Results& results) {
  for (const std::size_t number : usedPfs(view)) {
    const Device& pf = view.function(number);
    if (topology::isUsable(pf)) {
      results.passed(nameOf(pf), "an active port", pf.rdma.empty() ? "up" : "active");
    } else {
      results.failed(nameOf(pf), "an active port", linkState(pf), linkRemedy(view, pf));
    }
  }
}

std::string withoutMtu(const View& view) {
  return std::ranges::any_of(
             view.requirements().vfs,
             [](const Requirement& requirement) { return requirement.mtu.has_value(); })
             ? ""
             : "no mapping sets an MTU";
}

void checkMtu(const View& view, Results& results) {
  for (const Requirement& requirement : view.requirements().vfs) {
    const Device* pf = findFunction(view.topology(), requirement.pf);
    if (pf == nullptr || !requirement.mtu) {
      continue;
    }
    const std::string subject = requirement.vm + ", " + requirement.entry;
    const std::string expected = "at least " + std::to_string(*requirement.mtu);
    const std::string netdev = pf->netdev();
    const auto mtu = netdev.empty()
                         ? std::nullopt
                         : view.root().readNumber(View::pathOf(*pf, "net/" + netdev + "/mtu"));
    if (!mtu) {
      results.notObservable(subject, expected, "cannot read the MTU of " + nameOf(*pf), "");
    } else if (*mtu < *requirement.mtu) {
      results.failed(subject, expected, netdev + " has " + std::to_string(*mtu),
                     "ip link set dev " + shellArgument(netdev) + " mtu " +
                         std::to_string(*requirement.mtu) + "  # permanently: mtu in host.yaml");
    } else {
      results.passed(subject, expected, netdev + " has " + std::to_string(*mtu));
    }
  }
}

struct RocePort {
  std::size_t pf = 0;
  std::string netdev;
};

std::vector<RocePort> rocePortsUp(const View& view) {
  std::vector<RocePort> ports;
  for (const std::size_t pf : pfsWith(view, LinkLayer::ethernet)) {
    for (const Netdev& netdev : view.function(pf).netdevs) {
      if (netdev.up && !netdev.enslaved) {
        ports.push_back({pf, netdev.name});
      }
    }
  }
  return ports;
}

std::string unlessMultiHomed(const View& view) {
  return rocePortsUp(view).size() > 1 ? "" : "fewer than two RoCE ports are up";
}

std::string arpText(const std::string& ignore, std::uint64_t announce) {
  return "arp_ignore " + ignore + ", arp_announce " + std::to_string(announce);
}

// With slashes, a name may contain dots (sysctl(8)).
std::string arpRemedy(const std::string& netdev) {
  const std::string separator = netdev.find('.') == std::string::npos ? "." : "/";
  std::string command = "sysctl -w";
  for (const auto& [name, value] :
       {std::pair("arp_ignore", arp::ignore), std::pair("arp_announce", arp::announce)}) {
    command += " " + join({"net", "ipv4", "conf", shellArgument(netdev), name}, separator) + "=" +
               std::to_string(value);
  }
  return command;
}

// The kernel takes the larger of the two (IN_DEV_MAXCONF).
void checkArp(const View& view, Results& results) {
  const std::string folder = "proc/sys/net/ipv4/conf/";
  const std::string expected = arpText(
      std::to_string(arp::ignore) + " or " + std::to_string(arp::ignoreStrict), arp::announce);
  for (const auto& [pf, netdev] : rocePortsUp(view)) {
    const auto valueOf = [&, &interface = netdev](const std::string& name) {
      const auto own = view.root().readNumber(folder + interface + "/" + name);
      const auto all = view.root().readNumber(folder + "all/" + name);
      return own ? std::optional(std::max(*own, all.value_or(0))) : std::nullopt;
    };
    const auto ignore = valueOf("arp_ignore");
    const auto announce = valueOf("arp_announce");
    if (!ignore || !announce) {
      results.notObservable(netdev, expected, "cannot read them in /proc/sys", "");
      continue;
    }
    const std::string seen = arpText(std::to_string(*ignore), *announce);
    if (arp::isSound(*announce, *ignore)) {
      results.passed(netdev, expected, seen);
    } else {
      results.failedIfUsed(view.uses(pf), netdev, expected, seen, arpRemedy(netdev));
    }
  }
}

constexpr std::array rdmaTable{
    Check{"ofed", "modules of different releases do not load together", withoutMlx5, checkOfed},
    Check{"pf-netdev", "the kernel sets a VF's attributes only through its PF's netdev", withoutVfs,
          checkNetdev},
    Check{"link-type", "GUIDs need InfiniBand, VLANs need Ethernet", withoutTyped, checkLinkType},
    Check{"pf-link", "a VF's link follows its PF's port", withoutUsedPf, checkLink},
    Check{"pf-mtu", "a guest's MTU cannot exceed its PF's", withoutMtu, checkMtu},
    Check{"opensm", "VFs stay down if the subnet manager does not enable virtual ports",
          withoutInfiniband, checkOpenSm},
    Check{"arp", "otherwise one RoCE port answers ARP requests for another's address",
          unlessMultiHomed, checkArp}};

}  // namespace

std::vector<std::size_t> pfsWith(const View& view, LinkLayer layer) {
  std::vector<std::size_t> found;
  std::ranges::copy_if(view.pfs(), std::back_inserter(found),
                       [&](std::size_t pf) { return layerOf(view.function(pf)) == layer; });
  return found;
}

LinkLayer layerOf(const Device& function) {
  for (const RdmaDevice& device : function.rdma) {
    for (const RdmaPort& port : device.ports) {
      if (port.linkLayer != LinkLayer::unknown) {
        return port.linkLayer;
      }
    }
  }
  return LinkLayer::unknown;
}

std::vector<std::size_t> usedPfs(const View& view) {
  std::vector<std::size_t> used;
  if (view.namesDevices() || view.rails().empty()) {
    std::ranges::copy_if(view.pfs(), std::back_inserter(used),
                         [&](std::size_t pf) { return view.uses(pf); });
    return used;
  }
  std::set<std::size_t> ofRails;
  for (const auto& rail : view.rails()) {
    ofRails.insert(*rail.pf);
  }
  return {ofRails.begin(), ofRails.end()};
}

std::span<const Check> rdmaChecks() { return rdmaTable; }

}  // namespace vfpass::doctor
