#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/pci_address.hpp"

namespace vfpass {

enum class LinkLayer { unknown, ethernet, infiniband };

std::string_view toString(LinkLayer layer);

/// One network device of a PCI function.
struct Netdev {
  std::string name;
  int index = 0;          ///< ifindex; unlike the name, constant while the device exists
  bool up = false;        ///< administratively up (IFF_UP)
  bool enslaved = false;  ///< has a master: bond, bridge, team, VRF
};

/// One port of an RDMA device.
struct RdmaPort {
  unsigned number = 1;
  std::string state;  ///< the kernel's name: ACTIVE, DOWN, INIT, ...; empty: not observable
  LinkLayer linkLayer = LinkLayer::unknown;
  unsigned rate = 0;  ///< Mbit/s
};

struct RdmaDevice {
  std::string name;
  std::string nodeGuid = {};
  std::string firmware = {};
  std::vector<RdmaPort> ports = {};
};

/// Another function in the IOMMU group or on the bus of a device.
struct GroupPeer {
  PciAddress address;
  std::uint32_t classCode = 0;  ///< 24 bits: base class, subclass, programming interface
  std::string driver;

  auto operator<=>(const GroupPeer&) const = default;
};

/// One end of a PCI Express link; 0: not observable (VFs have no link of their own).
struct PcieLink {
  unsigned speed = 0;  ///< MT/s per lane: 2500, 5000, 8000, 16000, 32000, 64000
  unsigned width = 0;  ///< lanes

  auto operator<=>(const PcieLink&) const = default;
};

/// The role of a function. Bridges are distinguished by their PCI Express capability.
enum class FunctionRole {
  other,
  gpu,
  nic,
  nvswitch,
  nvlinkManagement,  ///< of a GPU board: a ConnectX through which its NVSwitches are managed; no
                     ///< NIC
  rootPort,
  upstreamPort,    ///< of a switch, towards the host
  downstreamPort,  ///< of a switch, one for each device below it
  bridge           ///< any other PCI-to-PCI bridge, or one whose capability cannot be read
};

std::string_view toString(FunctionRole role);

/// One PCI function: a PF, a VF, a function that is assigned whole (`gpus:` and `functions:` of a
/// mapping), or one of a Topology. A reader states which members it reads; the others keep their
/// defaults.
struct Device {
  PciAddress address;
  std::string path;  ///< sysfs device path below /sys/devices, stable across netdev renames
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t subsystemVendor = 0;
  std::uint16_t subsystemDevice = 0;
  std::uint32_t classCode = 0;  ///< 24 bits, as in GroupPeer
  FunctionRole role = FunctionRole::other;
  std::string model;           ///< from the PCI ID database; empty where unknown
  std::string serial;          ///< VPD serial number; empty where the device has none
  std::string driver;          ///< empty: none bound
  std::string driverOverride;  ///< empty: none
  /// driver_override could not be read: a probe or remove holds the device's lock, or hangs with
  /// it.
  bool locked = false;
  std::optional<unsigned> iommuGroup;
  std::vector<GroupPeer> groupPeers;  ///< other functions in its IOMMU group, by address
  /// In switchdev mode a PF's uplink is first, and the representors of VFs are last.
  std::vector<Netdev> netdevs;
  std::vector<RdmaDevice> rdma;
  LinkLayer linkLayer = LinkLayer::unknown;  ///< of its first RDMA device or netdev
  int numaNode = -1;
  PcieLink link;  ///< current speed and width
  PcieLink best;  ///< maximum of this end
  /// A process (usually QEMU) has its VFIO group or device open. False where unknown.
  bool vfioInUse = false;
  std::string vfioUser;  ///< that process, as it describes itself; empty: none, or unknown
  /// The host's uses of its block devices, one bounded text each: `sda1 is mounted at /data`.
  std::vector<std::string> uses;
  bool bootVga = false;  ///< the boot display: the host's console
  /// The kernel's methods for resetting this function alone, in order of preference (`flr bus`).
  /// Empty: it has none; nullopt: not observable (before Linux 5.15, or missing in a captured
  /// tree).
  std::optional<std::vector<std::string>> resetMethods = {};
  /// Other functions on its bus, which a bus reset would also reset. Empty on a root bus, which
  /// cannot be reset.
  std::vector<GroupPeer> busPeers = {};
  /// The VFIO driver whose module matches it best (modules.alias); vfio-pci matches everything.
  std::string vfioDriver = "vfio-pci";
  unsigned totalVfs = 0;                       ///< maximum number of VFs, if it is a PF
  unsigned vfCount = 0;                        ///< current number of VFs; see PhysicalFunction::vfs
  std::optional<PciAddress> physicalFunction;  ///< its PF, if it is a VF

  // In a Topology.
  std::optional<unsigned> vfIndex;    ///< of a VF that its PF lists
  std::size_t hostBridge = 0;         ///< index in Topology::hostBridges
  std::optional<std::size_t> parent;  ///< bridge above: index in functions; nullopt: root bus
  std::string entry;                  ///< in a guest: its entry in the mapping; empty: none

  /// The first netdev; without name and index if the device has none.
  [[nodiscard]] const Netdev& uplink() const;
  /// Names of the first netdev and RDMA device; empty if the device has none.
  [[nodiscard]] const std::string& netdev() const { return uplink().name; }
  [[nodiscard]] const std::string& rdmaDevice() const;
  /// The first port of the first RDMA device; null if the device has none.
  [[nodiscard]] const RdmaPort* rdmaPort() const;
};

/// PCI class 0604: PCI-to-PCI bridges, which have a bus below them.
bool isPciBridge(std::uint32_t classCode);

/// PCI class 06xx: host bridges, PCI-to-PCI bridges, root and switch ports, and the like. False for
/// an NVSwitch, which has that class but no bus below it.
bool isBridge(const Device& device);

/// An NVSwitch, by NVIDIA's vendor ID and class 0680 (other bridge).
bool isNvSwitch(const Device& device);

/// A GPU of a board whose NVSwitches are not PCI functions: HGX B200 and B300, by the IDs in
/// published captures. GB200's board (2941) has no NVSwitches; those are in other trays of the
/// rack.
bool isBlackwellModule(const Device& device);

}  // namespace vfpass
