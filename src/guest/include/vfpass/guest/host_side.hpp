#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::guest {

/// The way between a VM's NIC and its nearest GPU, as the host sees it.
struct GpuWay {
  PcieLink link;                    ///< narrowest one above the GPU
  bool throughRootComplex = false;  ///< no switch of the host has both below it
  std::string distance;             ///< PIX, PXB, PHB, NODE, SYS
  /// The same two in the tree that the running domain's XML describes; empty: not known.
  std::string inXml = {};
};

/// Who has the leased device in hand, as the host sees it.
struct DeviceHold {
  bool inLiveXml = false;  ///< the running domain has a hostdev with the VF's address
  std::string driver;      ///< bound to the VF on the host; empty: none
  bool byThisDomain = false;
  std::string holder;  ///< who has its VFIO device open; empty: nobody who can be seen
};

/// What the host knows of one lease's device.
struct HostSide {
  std::uint16_t vendor = 0;  ///< of the VF, as its guest sees it, too; 0: not observable
  std::uint16_t device = 0;
  PcieLink link;              ///< narrowest one above the PF: its VFs share it; 0: not observable
  unsigned portRate = 0;      ///< of the PF's port, Mbit/s; 0: not observable
  std::optional<GpuWay> gpu;  ///< none: the VM has no GPU of ours
  std::optional<unsigned> guestMtu;  ///< as the mapping wants it in the guest
  DeviceHold hold;
};

}  // namespace vfpass::guest
