#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/holder.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/pf_settings.hpp"
#include "vfpass/vf_settings.hpp"

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

/// Traffic of a VF since the VFs were created, as counted by the PF's switch (IFLA_VF_STATS). The
/// guest cannot influence it.
struct VfTraffic {
  std::uint64_t receivedBytes = 0;
  std::uint64_t sentBytes = 0;
  std::uint64_t receivedPackets = 0;
  std::uint64_t sentPackets = 0;

  auto operator<=>(const VfTraffic&) const = default;
};

/// Counters of a VF by the name of the statistic (`rx_bytes`), from vfStatisticNames.
using VfStatistics = std::map<std::string, std::uint64_t, std::less<>>;

/// The statistics that rtnetlink (IFLA_VF_STATS) or a driver's files in sysfs have: those that
/// sriov-network-metrics-exporter reports. No source has all of them.
inline constexpr std::array<std::string_view, 9> vfStatisticNames{
    "rx_broadcast", "rx_bytes",   "rx_dropped", "rx_multicast", "rx_packets",
    "tx_bytes",     "tx_dropped", "tx_errors",  "tx_packets"};

/// Another function in the IOMMU group of a device that is to be assigned to a guest.
struct GroupPeer {
  PciAddress address;
  std::uint32_t classCode = 0;  ///< 24 bits: base class, subclass, programming interface
  std::string driver;

  auto operator<=>(const GroupPeer&) const = default;
};

/// The current state of one VF. Its identity is (PF, index); the PCI address follows from both.
struct VirtualFunction {
  unsigned index = 0;
  PciAddress address;
  std::string driver;          ///< empty: none bound
  std::string driverOverride;  ///< empty: none
  /// driver_override could not be read: a probe or remove holds the device's lock, or hangs with
  /// it.
  bool locked = false;
  std::optional<unsigned> iommuGroup;
  std::vector<GroupPeer> groupPeers;  ///< other functions in its IOMMU group, by address
  std::vector<Netdev> netdevs;
  std::string rdmaDevice;
  /// A process (usually QEMU) has its VFIO group or device open. False where unknown.
  bool vfioInUse = false;
  std::string vfioUser;  ///< that process, as it describes itself; empty: none, or unknown
  /// As reported by the PF's driver; empty members are not observable.
  VfSettings settings;
  /// False when the kernel's reply omits this VF although it exists: the nested VF list has a
  /// 16-bit length, which wraps above about 220 VFs.
  bool settingsReadable = false;
  /// The netdev on the host that represents the VF in switchdev mode; empty: none.
  std::string representor = {};
};

/// A RoCE LAG: mlx5 combines the ports of a card whose netdevs are below one bond into one RDMA
/// device, whatever its name (mlx5_bond_0, after rdma-core's renaming rocep59s0).
struct RoceLag {
  std::string bond;        ///< netdev
  std::string rdmaDevice;  ///< empty: none
  /// The PF that this device belongs to, this PF or the other one; nullopt: none.
  std::optional<PciAddress> rdmaPf;

  auto operator<=>(const RoceLag&) const = default;
};

/// One PF. Netdev, RDMA device and PCI address all name the same function.
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
  /// Whether its driver has detached the netdev (detachedNetdev()).
  bool netdevDetached = false;
  std::string rdmaDevice;
  LinkLayer linkLayer = LinkLayer::unknown;
  int numaNode = -1;
  bool sriovCapable = false;
  unsigned totalVfs = 0;
  /// Routing ID offset of VF 0 from the PF, and stride between VFs (sriov_offset, sriov_stride).
  /// They give the addresses of VFs that do not exist yet. 0: not observable.
  unsigned vfOffset = 0;
  unsigned vfStride = 0;
  bool probesVfs = true;             ///< sriov_drivers_autoprobe
  std::vector<VirtualFunction> vfs;  ///< by index; read from virtfn links, never sriov_numvfs
  /// Names of the netdevs stacked on its netdev in the host's network namespace: bond, bridge,
  /// VLAN, macvlan.
  std::vector<std::string> uppers;
  /// IP addresses of its netdev, `192.0.2.1/24`, without IPv6 link-local ones, which every netdev
  /// has while it is up. Empty on a captured tree.
  std::vector<std::string> addresses;
  std::uint32_t classCode = 0;  ///< 24 bits: base class, subclass, programming interface
  /// The driver has files for VFs below the PF (`sriov/N/`): MLNX_OFED and DOCA-OFED.
  bool hasVfFiles = false;
  /// Only of a PF without netdev: the PF of the same port of a Socket Direct card that has it.
  std::optional<PciAddress> mainPf = {};
  std::optional<RoceLag> lag = {};
  /// The driver reports none of its VFs and lets the host set none of their attributes: mlx5 if the
  /// PF does not manage its embedded switch. False while there are no VFs, and where unknown.
  bool reportsNoVfs = false;
  /// Read where a mapping or lease needs it, of mlx5's PFs. Empty: not read, or not observable.
  std::optional<EswitchMode> eswitchMode = {};
};

/// One PCI function that is assigned whole (`gpus:` and `functions:` of a mapping). Read only for
/// the addresses that a mapping or a lease names.
struct PciFunction {
  PciAddress address;
  std::string path;  ///< sysfs device path below /sys/devices
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t classCode = 0;  ///< 24 bits, as in GroupPeer
  std::string model;            ///< from the PCI id database; empty where unknown
  std::string serial;           ///< VPD serial number; empty where the device has none
  std::string driver;           ///< empty: none bound
  std::string driverOverride;   ///< empty: none
  bool locked = false;          ///< see VirtualFunction::locked
  std::optional<unsigned> iommuGroup;
  std::vector<GroupPeer> groupPeers;  ///< other functions in its IOMMU group
  std::vector<Netdev> netdevs;
  /// The host's uses of its block devices, one bounded text each: `sda1 is mounted at /data`.
  std::vector<std::string> uses;
  bool vfioInUse = false;  ///< a process has its VFIO group or device open
  std::string vfioUser;    ///< that process, as it describes itself; empty: none, or unknown
  int numaNode = -1;
  bool bootVga = false;                        ///< the boot display: the host's console
  unsigned vfCount = 0;                        ///< current VFs, if it is a PF
  std::optional<PciAddress> physicalFunction;  ///< its PF, if it is a VF
  /// The kernel's methods for resetting this function alone, in order of preference (`flr bus`).
  /// Empty: there is none; nullopt: not observable (before Linux 5.15, or missing in a captured
  /// tree).
  std::optional<std::vector<std::string>> resetMethods = {};
  /// Other functions on its bus, which a bus reset would also reset. Empty on a root bus, which
  /// cannot be reset.
  std::vector<GroupPeer> busPeers = {};
  /// The VFIO driver whose module matches it best (modules.alias); vfio-pci matches everything.
  std::string vfioDriver = "vfio-pci";
};

/// PCI class 06xx: host bridges, PCI-to-PCI bridges, root and switch ports, and the like. False for
/// an NVSwitch, which has that class but no bus below it.
bool isBridge(const PciFunction& function);

/// An NVSwitch, by NVIDIA's vendor id and class 0680 (other bridge).
bool isNvSwitch(std::uint16_t vendor, std::uint32_t classCode);

/// The host's devices, read once.
struct Inventory {
  std::vector<PhysicalFunction> pfs;   ///< by address
  std::vector<PciFunction> functions;  ///< of the addresses that the caller named
  /// Holders of the VFs and functions that the caller asked about (Kernel::findHolders). Planners
  /// treat a device without a holder as idle, so ask about every device that they may choose.
  std::vector<Holder> holders;
  bool unsafeInterrupts = false;  ///< vfio_iommu_type1.allow_unsafe_interrupts=Y
  bool iommuPresent = false;      ///< /sys/kernel/iommu_groups has at least one group
};

const PhysicalFunction* findPf(const Inventory& inventory, const PciAddress& address);
const PciFunction* findFunction(const Inventory& inventory, const PciAddress& address);

}  // namespace vfpass
