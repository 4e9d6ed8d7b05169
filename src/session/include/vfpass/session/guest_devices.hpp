#pragma once

#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/report/nccl_topology.hpp"
#include "vfpass/report/topology_report.hpp"

namespace vfpass::session {

/// A leased device and its place in the host's topology.
struct LeasedDevice {
  Lease lease;
  std::size_t function = 0;  ///< index of its function; of the PF if the VF does not exist yet
};

/// The devices leased to a VM (name or UUID). Throws Error if there are none or a PF does not
/// exist.
std::vector<LeasedDevice> guestDevicesOf(const std::string& vm,
                                         const report::TopologyReport& report);

/// The same devices with their address and NUMA node in the guest, for NCCL's file. Throws Error
/// for a device that is missing from the domain XML.
std::vector<report::GuestDevice> placedIn(const GuestMachine& machine,
                                          const std::vector<LeasedDevice>& devices,
                                          const Topology& guest);

}  // namespace vfpass::session
