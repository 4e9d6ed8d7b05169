#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/device.hpp"
#include "vfpass/hand_over.hpp"
#include "vfpass/holder.hpp"
#include "vfpass/pci_address.hpp"
#include "vfpass/vf_attributes.hpp"

namespace vfpass {

struct Lease;

/// Mode of a PF's embedded switch: it switches by itself (legacy), or by rules that the host loads.
enum class EswitchMode { legacy, switchdev };

std::string_view toString(EswitchMode mode);
std::optional<EswitchMode> parseEswitchMode(std::string_view name);

/// The settings of a PF's netdev that host.yaml controls.
struct LinkSettings {
  unsigned mtu = 0;  ///< bytes
  bool up = false;   ///< administratively up (IFF_UP), regardless of carrier

  auto operator<=>(const LinkSettings&) const = default;
};

/// Current values of the PF settings that host.yaml controls, other than VFs.
struct PfSettings {
  std::optional<EswitchMode> eswitchMode;  ///< empty: not observable
  std::optional<LinkSettings> link;        ///< empty: the PF has no netdev, or not observable

  auto operator<=>(const PfSettings&) const = default;
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

/// One VF. Its identity is (PF, index); the PCI address follows from both.
struct VirtualFunction : Device {
  unsigned index = 0;
  /// As reported by the PF's driver; empty members are not observable.
  VfSettings settings;
  /// False when the kernel's reply omits this VF although it exists: the nested VF list has a
  /// 16-bit length, which wraps above about 220 VFs.
  bool settingsReadable = false;
  /// The netdev on the host that represents the VF in switchdev mode; empty: none.
  std::string representor = {};
  /// Whether the firmware can save its state. Read where an entry or lease has `migration: vfio`.
  /// Empty: not read, or not observable.
  std::optional<bool> migratable = {};
};

/// Whether the firmware can save the state of each VF, by index: what devlink says at its port,
/// which mlx5 makes only in switchdev mode. An empty value: kernel (before Linux 6.2) or firmware
/// cannot save any.
using MigratableVfs = std::map<unsigned, std::optional<bool>>;

/// Whether devlink has ports of VFs, and none of them has `migratable`.
bool savesNone(const MigratableVfs& found);

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
struct PhysicalFunction : Device {
  /// Whether its driver has detached the netdev (detachedNetdev()).
  bool netdevDetached = false;
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
  /// Read where a mapping sets `msix-vectors`: Kernel::totalVfVectors(). Empty: not read, or not
  /// observable.
  std::optional<unsigned> totalVfVectors = {};
  /// savesNone(). False where it was not read, or is not observable.
  bool savesNoVfs = false;
};

/// Enters what devlink says into the PF and its VFs.
void noteMigratable(PhysicalFunction& pf, const MigratableVfs& found);

/// The host's devices, read once.
struct Inventory {
  std::vector<PhysicalFunction> pfs;  ///< by address
  /// Functions that are assigned whole: those of the addresses that the caller named.
  std::vector<Device> functions;
  /// Holders of the VFs and functions that the caller asked about (Kernel::findHolders). Planners
  /// treat a device without a holder as idle, so ask about every device that they may choose.
  std::vector<Holder> holders;
  /// Devices that no domain gets. Planners take a device that is not listed for one that is fit.
  std::vector<QuarantinedDevice> quarantined = {};
  bool unsafeInterrupts = false;  ///< vfio_iommu_type1.allow_unsafe_interrupts=Y
  bool iommuPresent = false;      ///< /sys/kernel/iommu_groups has at least one group
};

const PhysicalFunction* findPf(const Inventory& inventory, const PciAddress& address);
/// The PF of a leased VF; nullptr if it is not there, or if the lease is for a PCI function.
const PhysicalFunction* findPf(const Inventory& inventory, const Lease& lease);
/// The VF of the lease, even if it is another one than the leased one (plan::otherDevice());
/// nullptr if the lease is for a function, or if the VF does not exist.
const VirtualFunction* findVf(const Inventory& inventory, const Lease& lease);
const Device* findFunction(const Inventory& inventory, const PciAddress& address);

/// One memory BAR of a PCI function.
struct MemoryBar {
  std::uint64_t bytes = 0;
  bool wide = false;  ///< 64 bits: may be above 4 GiB if it is also prefetchable
  bool prefetchable = false;

  auto operator<=>(const MemoryBar&) const = default;
};

/// Reserved huge pages of one size on one NUMA node.
struct PagePool {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
};

struct NodeMemory {
  std::uint64_t bytes = 0;                  ///< 0: not observable
  std::map<std::uint64_t, PagePool> pages;  ///< by page size in bytes
};

/// Host resources for guests other than devices. Members are empty where not observable.
struct HostCapacity {
  unsigned addressBits = 0;  ///< physical address bits of the CPUs
  std::map<PciAddress, std::vector<MemoryBar>> bars;
  std::map<PciAddress, std::vector<MemoryBar>> vfBars;  ///< of one VF, by its PF
  std::map<int, NodeMemory> nodes;                      ///< NUMA nodes by number
};

}  // namespace vfpass
