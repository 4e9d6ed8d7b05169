#pragma once

#include <optional>
#include <vector>

#include "guest_view.hpp"
#include "limits.hpp"
#include "vfpass/finding.hpp"
#include "vfpass/guest/host_side.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/nvlink_mode.hpp"

namespace vfpass::guest {

/// The port through which a lease's data path can be tried.
struct RdmaPort {
  std::string device;
  int number = 1;
  bool software = false;  ///< SoftRoCE: its rate means nothing
  /// For packets: of the older InfiniBand speeds without what their line code takes.
  std::optional<double> gigabitsPerSecond;
  Wire wire = Wire::roceV2OverIpv4;
  unsigned mtu = 0;    ///< RDMA's, bytes; 0: unknown
  std::string netdev;  ///< empty for InfiniBand
  std::string pci;     ///< in the guest; of a software device that of its netdev
  std::optional<int> gidIndex;
  double lineCode = 1;  ///< share of the link's rate that is packets
};

struct DeviceVerdict {
  std::vector<Finding> findings;  ///< ends with the first broken link
  std::optional<RdmaPort> port;   ///< there when nothing is broken
};

/// Layer after layer, from the device to an active port with a GID: is it the leased one, as
/// configured? Pure: the guest's word held against the lease, and against what the host knows.
DeviceVerdict judgeDevice(const Lease& lease, const GuestView& view, const HostSide& host = {});

/// What the guest says that its port sends, from sysfs's text for it: `40 Gb/sec (4X QDR)` is 32
/// Gb/s on InfiniBand, where the line code takes its part, and 40 on Ethernet.
std::optional<double> packetRate(const std::string& rate, bool infiniband);

/// Is there a GPU that RDMA can reach, and by which road? Waived when `wanted` is false and the
/// guest has none. `nvlink` is what the mapping says; the remedy of CUDA error 802 follows from it.
std::vector<Finding> judgeGpus(const GuestView& view, bool wanted,
                               std::optional<NvlinkMode> nvlink = {});

}  // namespace vfpass::guest
