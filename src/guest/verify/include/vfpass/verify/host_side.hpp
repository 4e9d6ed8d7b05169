#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfpass/base/pci_files.hpp"
#include "vfpass/inventory.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::verify {

/// The PCI path between a VM's NIC and one of its GPUs, on the host.
struct GpuPath {
  /// The slowest link above the GPU, up to the bridge that it shares with the NIC or to the root
  /// complex, at the speed and width that it is capable of.
  PcieLink link;
  bool throughRootComplex = false;  ///< NIC and GPU share no switch on the host
  std::string distance;             ///< PIX, PXB, PHB, NODE, SYS
  /// Distance of the two in the tree that the running domain's XML describes; empty: unknown.
  std::string inXml = {};
  PcieLink nic = {};          ///< the same above the NIC, as far as the bridge; 0: not observable
  std::string degraded = {};  ///< the degraded links of those above the GPU; empty: none
};

/// The holder of a leased device, as seen on the host.
struct DeviceHold {
  bool inLiveXml = false;     ///< the running domain has a hostdev with the VF's address
  std::string driver;         ///< bound to the VF on the host; empty: none
  bool byThisDomain = false;  ///< the holder is this domain's QEMU
  std::string holder;         ///< process that has the VFIO device open; empty: none visible
};

/// Sizes of packets of a VF's PF, as the host reads them.
struct HostPackets {
  PciePackets pf;
  /// The largest payload that all functions below the PF's root port, and the port itself, support.
  unsigned payloadPossible = 0;
};

/// What the mapping wants in the guest of one entry's VF.
struct WantedInGuest {
  std::optional<unsigned> mtu;
  std::optional<unsigned> gidIndex = {};  ///< NCCL's, the same for all entries
  std::string address = {};               ///< `192.168.100.10/24`; empty: not set
  std::string vm = {};                    ///< for remedies
};

/// The host's view of one lease's device.
struct HostSide {
  std::uint16_t vendor = 0;  ///< PCI IDs of the VF, the same in the guest; 0: not observable
  std::uint16_t device = 0;
  /// The slowest link above the PF, at the speed and width that it is capable of; its VFs share it.
  /// 0: not observable.
  PcieLink link;
  unsigned portRate = 0;             ///< rate of the PF's port, Mbit/s; 0: not observable
  std::optional<GpuPath> gpu;        ///< to the GPU under test; nullopt: unknown, or none
  std::optional<unsigned> guestMtu;  ///< MTU in the guest, from the mapping
  DeviceHold hold;
  /// The VF's place in the guest's PCI tree, from the running domain's XML (topology::guestPath).
  /// Empty: unknown.
  std::vector<PciAddress> guestPath = {};
  std::optional<unsigned> gidIndex = {};    ///< NCCL's GID index, from the mapping
  std::optional<HostPackets> packets = {};  ///< nullopt: not readable
  std::string guestAddress = {};            ///< the VF's IP address, from the mapping; empty: none
  std::string degraded = {};                ///< the degraded links above the PF; empty: none
};

/// Where the host runs a VM, and where its devices are.
struct HostPlacement {
  struct Place {
    std::string entry;
    unsigned node = 0;  ///< of the device, or of a VF's PF
  };
  std::vector<Place> devices;  ///< leased ones whose node is known
  std::size_t hostNodes = 0;   ///< NUMA nodes of the host
  /// Nodes of the CPUs that vCPUs are pinned to, and of the memory. nullopt: not restricted.
  std::optional<std::set<unsigned>> vcpuNodes;
  std::optional<std::set<unsigned>> memoryNodes;
  bool automatic = false;   ///< numad decides
  bool guestCells = false;  ///< the guest has NUMA cells
};

/// A GPU that vfpass leased to the running VM.
struct LeasedGpu {
  std::string entry;  ///< its entry in the mapping
  /// Its place in the guest's PCI tree, from the running domain's XML (topology::guestPath). Empty:
  /// unknown.
  std::vector<PciAddress> guestPath;
  std::map<std::string, GpuPath> paths;  ///< on the host, from the PF of each VF, by the VF's entry
};

}  // namespace vfpass::verify
