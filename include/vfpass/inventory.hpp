#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_settings.hpp"

namespace vfpass {

enum class LinkLayer { unknown, ethernet, infiniband };

std::string_view toString(LinkLayer layer);

/// One network device of a PCI function, as the host sees it.
struct Netdev {
  std::string name;
  int index = 0;          ///< ifindex; names change, this does not while the device lives
  bool up = false;        ///< administratively up (IFF_UP)
  bool enslaved = false;  ///< has a master: bond, bridge, team, VRF
};

/// One VF as found. Its identity is (PF, index); the PCI address follows from both.
/// What went through a VF, as the PF's switch has counted it since the VFs were made: the host's
/// own knowledge, not the guest's (IFLA_VF_STATS).
struct VfTraffic {
  std::uint64_t receivedBytes = 0;
  std::uint64_t sentBytes = 0;
  std::uint64_t receivedPackets = 0;
  std::uint64_t sentPackets = 0;

  auto operator<=>(const VfTraffic&) const = default;
};

struct VirtualFunction {
  unsigned index = 0;
  PciAddress address;
  std::string driver;          ///< empty: none bound
  std::string driverOverride;  ///< empty: none
  std::optional<unsigned> iommuGroup;
  std::vector<PciAddress> groupPeers;  ///< other functions in its IOMMU group
  std::vector<Netdev> netdevs;
  std::string rdmaDevice;
  /// A process holds its VFIO group or device open (a running VM, mostly). False where unknown.
  bool vfioInUse = false;
  std::string vfioUser;  ///< who that is, by its own word; empty: nobody, or unknown
  /// What the PF's driver says; empty members are not observable.
  VfSettings settings;
  /// False when the kernel's reply left this VF out, although it exists: the nested VF list has a
  /// 16-bit length and wraps above about 220 VFs.
  bool settingsReadable = false;
};

/// One PF; netdev, RDMA device and PCI address are three names of one thing.
struct PhysicalFunction {
  PciAddress address;
  std::string path;  ///< sysfs device path below /sys/devices, stable across netdev renames
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::string model;   ///< from the PCI id database; empty where unknown
  std::string serial;  ///< VPD serial number; empty where the device has none
  std::string driver;
  std::string netdev;  ///< first netdev; empty: none
  int netdevIndex = 0;
  bool netdevUp = false;
  std::string rdmaDevice;
  LinkLayer linkLayer = LinkLayer::unknown;
  int numaNode = -1;
  bool sriovCapable = false;
  unsigned totalVfs = 0;
  /// Routing ids of VF 0 relative to the PF, and between VFs (sriov_offset, sriov_stride): where
  /// the VFs of a PF that has none yet will appear. 0: not observable.
  unsigned vfOffset = 0;
  unsigned vfStride = 0;
  bool probesVfs = true;             ///< sriov_drivers_autoprobe
  std::vector<VirtualFunction> vfs;  ///< by index; counted by virtfn links, never by sriov_numvfs
  /// Netdevs stacked on its netdev, by name: bond, bridge, VLAN, macvlan. Of the host's own network
  /// namespace.
  std::vector<std::string> uppers;
  /// IP addresses of its netdev, `192.0.2.1/24`, without IPv6's link-local ones, which every netdev
  /// has that is up. Empty on a captured tree.
  std::vector<std::string> addresses;
};

/// Another function in the IOMMU group of one that is to be given away.
struct GroupPeer {
  PciAddress address;
  std::uint32_t classCode = 0;  ///< 24 bits: base class, subclass, programming interface
  std::string driver;

  auto operator<=>(const GroupPeer&) const = default;
};

/// One PCI function as it is: what `gpus:` of a mapping gives to a guest. Read for the addresses
/// that a mapping or a lease names, and for no others.
struct PciFunction {
  PciAddress address;
  std::string path;  ///< sysfs device path below /sys/devices
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t classCode = 0;  ///< 24 bits, as GroupPeer's
  std::string model;            ///< from the PCI id database; empty where unknown
  std::string serial;           ///< VPD serial number; empty where the device has none
  std::string driver;           ///< empty: none bound
  std::string driverOverride;   ///< empty: none
  std::optional<unsigned> iommuGroup;
  std::vector<GroupPeer> groupPeers;  ///< other functions in its IOMMU group
  std::vector<Netdev> netdevs;
  /// What the host does with its block devices, one text each, bounded: `sda1 is mounted at /data`.
  std::vector<std::string> uses;
  bool vfioInUse = false;  ///< a process holds its VFIO group or device open
  std::string vfioUser;    ///< who that is, by its own word; empty: nobody, or unknown
  int numaNode = -1;
  bool bootVga = false;                        ///< firmware set this display up: the host's console
  unsigned vfCount = 0;                        ///< VFs that it has as a PF
  std::optional<PciAddress> physicalFunction;  ///< it is a VF of this PF
  /// How the kernel can reset it alone, in the order of its choice (`flr bus`); empty: it cannot;
  /// nullopt: not observable (before Linux 5.15, or a tree that was captured without it).
  std::optional<std::vector<std::string>> resetMethods = {};
  /// Other functions of its bus, which a reset of the bus would reset as well. Empty on a root bus,
  /// which cannot be reset.
  std::vector<GroupPeer> busPeers = {};
  /// The VFIO driver whose module fits it best (modules.alias); vfio-pci fits everything.
  std::string vfioDriver = "vfio-pci";
};

/// PCI class 06xx: host bridges, PCI-to-PCI bridges, root and switch ports, and the like; not an
/// NVSwitch, which has that class but no bus below it.
bool isBridge(const PciFunction& function);

/// An NVSwitch, by NVIDIA's vendor id and class 0680 (other bridge).
bool isNvSwitch(std::uint16_t vendor, std::uint32_t classCode);

/// What the host has, read once.
struct Inventory {
  std::vector<PhysicalFunction> pfs;   ///< by address
  std::vector<PciFunction> functions;  ///< those that the caller named and that exist
  /// Of the VFs and functions that the caller asked about (Kernel::findHolders); planners take a
  /// device without a holder for idle, so ask about each one that they may choose.
  std::vector<Holder> holders;
  bool unsafeInterrupts = false;  ///< vfio_iommu_type1.allow_unsafe_interrupts=Y
  bool iommuPresent = false;      ///< /sys/kernel/iommu_groups has at least one group
};

const PhysicalFunction* findPf(const Inventory& inventory, const PciAddress& address);
const PciFunction* findFunction(const Inventory& inventory, const PciAddress& address);

}  // namespace vfpass
