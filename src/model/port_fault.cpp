#include "vfpass/port_fault.hpp"

#include "vfpass/base/driver_name.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

// PCI class of an InfiniBand controller: a port shows its link type there, too.
constexpr std::uint32_t infinibandController = 0x0207;

// ib_ipoib has no modalias by which udev would load it.
constexpr const char* ipoibRemedy =
    "run `modprobe ib_ipoib`, and install rdma-core, whose rdma-load-modules@infiniband.service "
    "loads it at boot";

bool isInfiniband(const PortFacts& port) {
  return port.linkLayer == LinkLayer::infiniband ||
         (port.linkLayer == LinkLayer::unknown && port.classCode >> 8U == infinibandController);
}

bool isMlx5(const PortFacts& port) { return port.driver == "mlx5_core"; }

std::string lookAtLog(const PortFacts& port) {
  const std::string address = toString(port.address);
  return "see the driver's reason with `journalctl -k --grep '" + printable(port.driver) + " " +
         address + "'`" +
         (isMlx5(port) ? " and the firmware's state with `devlink health show pci/" + address + "`"
                       : "");
}

PortFault withoutHostDriver(const PortFacts& port) {
  return {port.driver.empty() ? "is bound to no driver"
                              : "is bound to " + printable(port.driver) + ", for use in a guest",
          "bind it to its own driver, or choose another PF"};
}

// Without an RDMA device nothing sets apart a driver that is missing from one that has failed.
PortFault withoutIpoib(const PortFacts& port) {
  if (port.rdmaDevice) {
    return {"has no IPoIB netdev, through which the kernel sets GUIDs and link state of VFs",
            ipoibRemedy};
  }
  return {"is InfiniBand and has neither RDMA device nor IPoIB netdev",
          std::string(isMlx5(port) ? "run `modprobe mlx5_ib` and `modprobe ib_ipoib`, and install "
                                     "rdma-core, which loads them at boot"
                                   : "load its RDMA driver and ib_ipoib") +
              "; if no device appears, " + lookAtLog(port)};
}

// The kernel combines the PFs of a Socket Direct card into the netdev of the one with the lowest
// bus number, and disconnects the others from the network (since Linux 6.9, mlx5/core/lib/sd.c).
PortFault secondary(const PortFacts& port, const PciAddress& mainPf) {
  return {"has no netdev of its own, because PF " + toString(mainPf) +
              " of the same Socket Direct card has the one of both",
          "choose PF " + toString(mainPf) + "; if the card is no Socket Direct card, " +
              lookAtLog(port)};
}

// A namespace can hold netdev and RDMA device (`rdma system set netns exclusive`).
PortFault withoutNetdev(const PortFacts& port) {
  if (port.rdmaDevice) {
    return {"has an RDMA device, but no netdev in the host's network namespace",
            "move its netdev back from the container or network namespace that has it; if none "
            "has, " +
                lookAtLog(port)};
  }
  return {"is bound to " + printable(port.driver) +
              ", but has neither netdev nor RDMA device: the driver or the firmware has failed, or "
              "another network namespace has both",
          lookAtLog(port)};
}

}  // namespace

PortFault detachedNetdev() {
  return {
      "has a netdev that its driver has detached",
      "wait while the card is being reset; if the kernel log (dmesg) has \"failed to rollback to "
      "orig profile\", stop its VMs and reboot the host, without a command for this PF's "
      "netdev, eswitch or driver before, which could crash the kernel"};
}

PortFacts portFactsOf(const PhysicalFunction& pf) {
  return {pf.address,         pf.driver,         pf.classCode,
          !pf.netdev.empty(), pf.netdevDetached, !pf.rdmaDevice.empty(),
          pf.linkLayer,       pf.hasVfFiles,     pf.mainPf};
}

std::optional<PortFault> faultOfPort(const PortFacts& port) {
  if (port.netdev) {
    return port.detached ? std::optional(detachedNetdev()) : std::nullopt;
  }
  if (port.driver.empty() || isVfioDriver(port.driver)) {
    return withoutHostDriver(port);
  }
  if (isInfiniband(port)) {
    return port.rdmaDevice && port.vfFiles ? std::nullopt : std::optional(withoutIpoib(port));
  }
  return port.mainPf ? secondary(port, *port.mainPf) : withoutNetdev(port);
}

}  // namespace vfpass
