#pragma once

#include <optional>
#include <string>
#include <vector>

#include "guest_view.hpp"
#include "limits.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/verify/host_side.hpp"

namespace vfpass::verify {

/// The port of a lease's data path.
struct RdmaPort {
  std::string device;
  int number = 1;
  bool software = false;  ///< SoftRoCE, whose rate is meaningless
  /// Packet rate: without the line code of older InfiniBand speeds.
  std::optional<double> gigabitsPerSecond;
  Wire wire = Wire::roceV2OverIpv4;
  unsigned mtu = 0;    ///< RDMA MTU, bytes; 0: unknown
  std::string netdev;  ///< empty for InfiniBand
  std::string pci;     ///< address in the guest; for a software device that of its netdev
  std::optional<int> gidIndex;
  double lineCode = 1;   ///< share of the link rate that carries packets
  std::string gid = {};  ///< the one that the probe selected; empty: unknown
};

struct DeviceVerdict {
  std::vector<Finding> findings;  ///< up to the first failed check
  std::optional<RdmaPort> port;   ///< set when all checks passed
  std::string function = {};      ///< the VF's PCI address in the guest; empty: not found
};

/// A warning about degraded PCI Express links of the host: limits are those of full links.
Finding slowLink(const std::string& entry, const std::string& degraded);

/// Checks, from the device up to an active port with a GID, whether the guest has the leased device
/// in its configured state. Compares the guest's inventory with the lease and the host's view.
/// Pure.
DeviceVerdict judgeDevice(const Lease& lease, const GuestView& view, const HostSide& host = {});

/// Packet rate from the text that sysfs has for a port: `40 Gb/sec (4X QDR)` is 32 Gb/s on
/// InfiniBand, less the line code, and 40 Gb/s on Ethernet.
std::optional<double> packetRate(const std::string& rate, bool infiniband);

/// The command that configures this VM's guest from its mapping, in backticks, for remedies.
std::string guestSetupOf(const std::string& vm);
/// The same for the VM that has these leases.
std::string guestSetupOf(const std::vector<Lease>& leases);

/// How the VF's interface gets an IP address, and so a GID: by `vfpass guest-setup` if the mapping
/// has one.
std::string addressRemedy(const WantedInGuest& wanted);

/// Why an InfiniBand port cannot carry data, as the failed check `port`: link down, no subnet
/// manager, LID 0. nullopt: it can. Pure.
std::optional<Finding> judgeSubnet(const std::string& subject, const std::string& device,
                                   const GuestPort& port);

/// `p-key`: whether the port is in a partition. A warning if it is only a limited member, which
/// reaches full members only; the probe chooses the partition (docs/probe.md). nullopt for a probe
/// that does not report P_Keys. Pure.
std::optional<Finding> judgePartitions(const std::string& subject, const GuestPort& port);

/// `LID 7, subnet manager's LID 1`.
std::string lidsOf(const GuestPort& port);

/// Settings that work but are not optimal: an MTU that differs from the mapping's (`wanted`), the
/// type of GID, and NCCL's GID index. Pure.
std::vector<Finding> judgeNetworkSettings(const std::string& subject, const RdmaPort& port,
                                          const GuestView& view, const WantedInGuest& wanted);

}  // namespace vfpass::verify
