#include "vfpass/port_fault.hpp"

#include "vfpass/base/pci_files.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass {
namespace {

// PCI class of an InfiniBand controller: a port shows its link type there, too.
constexpr std::uint32_t infinibandController = 0x0207;

// ib_ipoib has no modalias by which udev would load it.
constexpr const char* ipoibRemedy =
    "run `modprobe ib_ipoib`, and install rdma-core, whose rdma-load-modules@infiniband.service "
    "loads it at boot";

bool isInfiniband(const PhysicalFunction& pf) {
  return pf.linkLayer == LinkLayer::infiniband ||
         (pf.linkLayer == LinkLayer::unknown && pf.classCode >> 8U == infinibandController);
}

bool isMlx5(const PhysicalFunction& pf) { return pf.driver == "mlx5_core"; }

std::string lookAtLog(const PhysicalFunction& pf) {
  const std::string address = toString(pf.address);
  return "see the driver's reason with `journalctl -k --grep '" + printable(pf.driver) + " " +
         address + "'`" +
         (isMlx5(pf) ? " and the firmware's state with `devlink health show pci/" + address + "`"
                     : "");
}

PortFault withoutHostDriver(const PhysicalFunction& pf) {
  return {pf.driver.empty() ? "is bound to no driver"
                            : "is bound to " + printable(pf.driver) + ", for use in a guest",
          "bind it to its own driver, or choose another PF"};
}

// Without an RDMA device nothing sets apart a driver that is missing from one that has failed.
PortFault withoutIpoib(const PhysicalFunction& pf) {
  if (!pf.rdma.empty()) {
    return {"has no IPoIB netdev, through which the kernel sets GUIDs and link state of VFs",
            ipoibRemedy};
  }
  return {"is InfiniBand and has neither RDMA device nor IPoIB netdev",
          std::string(isMlx5(pf) ? "run `modprobe mlx5_ib` and `modprobe ib_ipoib`, and install "
                                   "rdma-core, which loads them at boot"
                                 : "load its RDMA driver and ib_ipoib") +
              "; if no device appears, " + lookAtLog(pf)};
}

// The kernel combines the PFs of a Socket Direct card into the netdev of the one with the lowest
// bus number, and disconnects the others from the network (since Linux 6.9, mlx5/core/lib/sd.c).
PortFault secondary(const PhysicalFunction& pf, const PciAddress& mainPf) {
  return {"has no netdev of its own, because PF " + toString(mainPf) +
              " of the same Socket Direct card has the one of both",
          "choose PF " + toString(mainPf) + "; if the card is not a Socket Direct card, " +
              lookAtLog(pf)};
}

// A namespace can hold netdev and RDMA device (`rdma system set netns exclusive`).
PortFault withoutNetdev(const PhysicalFunction& pf) {
  if (!pf.rdma.empty()) {
    return {"has an RDMA device, but no netdev in the host's network namespace",
            "move its netdev back from the container or network namespace that has it; if none "
            "has, " +
                lookAtLog(pf)};
  }
  return {"is bound to " + printable(pf.driver) +
              ", but has neither netdev nor RDMA device: the driver or the firmware has failed, or "
              "another network namespace has both",
          lookAtLog(pf) +
              "; after a failure, unbind and bind the driver while nothing uses its VFs, or "
              "power-cycle the machine"};
}

}  // namespace

PortFault detachedNetdev() {
  return {
      "has a netdev that its driver has detached",
      "wait while the card is being reset; if the kernel log (dmesg) has \"failed to rollback to "
      "orig profile\", stop its VMs and reboot the host, without a command for this PF's "
      "netdev, eswitch or driver before, which could crash the kernel"};
}

std::optional<PortFault> faultOfPort(const PhysicalFunction& pf) {
  if (!pf.netdevs.empty()) {
    return pf.netdevDetached ? std::optional(detachedNetdev()) : std::nullopt;
  }
  if (pf.driver.empty() || isVfioDriver(pf.driver)) {
    return withoutHostDriver(pf);
  }
  if (isInfiniband(pf)) {
    return !pf.rdma.empty() && pf.hasVfFiles ? std::nullopt : std::optional(withoutIpoib(pf));
  }
  return pf.mainPf ? secondary(pf, *pf.mainPf) : withoutNetdev(pf);
}

}  // namespace vfpass
