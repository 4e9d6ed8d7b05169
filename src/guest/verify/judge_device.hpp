#pragma once

#include <optional>
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

}  // namespace vfpass::verify
