#pragma once

#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/report/nccl_topology.hpp"
#include "vfpass/report/topology_report.hpp"

namespace vfpass::cli {

/// A leased device and its place in the host's topology.
struct LeasedDevice {
  Lease lease;
  std::size_t function = 0;  ///< of a VF that is not made yet: its PF's
};

/// What a VM (name or UUID) holds. Throws Error when it holds nothing, or a PF is not there.
std::vector<LeasedDevice> guestDevicesOf(const std::string& vm,
                                         const report::TopologyReport& report);

/// The same for NCCL's file: each with its address and NUMA node in the guest. Throws Error for a
/// device that the domain's XML does not have.
std::vector<report::GuestDevice> placedIn(const GuestMachine& machine,
                                          const std::vector<LeasedDevice>& devices,
                                          const Topology& guest);

}  // namespace vfpass::cli
