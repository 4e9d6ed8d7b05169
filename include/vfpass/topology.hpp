#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/inventory.hpp"
#include "vfpass/pci_address.hpp"

namespace vfpass {

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
  rootPort,
  upstreamPort,    ///< of a switch, towards the host
  downstreamPort,  ///< of a switch, one for each device below it
  bridge           ///< any other PCI-to-PCI bridge, or one whose capability cannot be read
};

std::string_view toString(FunctionRole role);

/// One port of an RDMA device.
struct RdmaPort {
  unsigned number = 1;
  std::string state;  ///< the kernel's name: ACTIVE, DOWN, INIT, ...; empty: not observable
  LinkLayer linkLayer = LinkLayer::unknown;
  unsigned rate = 0;  ///< Mbit/s
};

struct RdmaDevice {
  std::string name;
  std::string nodeGuid;
  std::string firmware;
  std::vector<RdmaPort> ports;
};

/// One PCI function and its location in the topology.
struct TopologyFunction {
  PciAddress address;
  std::string path;  ///< sysfs device path below /sys/devices
  FunctionRole role = FunctionRole::other;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t subsystemVendor = 0;
  std::uint16_t subsystemDevice = 0;
  std::uint32_t classCode = 0;  ///< 24 bits
  std::string model;            ///< from the PCI ID database; filled in on request
  std::string serial;           ///< from VPD; only for GPUs and for NICs that are not VFs
  std::string driver;
  std::string vfioUser;  ///< VFIO user process, as it describes itself; empty: none observed
  std::optional<unsigned> iommuGroup;
  int numaNode = -1;
  PcieLink link;                      ///< current speed and width
  PcieLink best;                      ///< maximum of this end
  std::size_t hostBridge = 0;         ///< index in Topology::hostBridges
  std::optional<std::size_t> parent;  ///< bridge above: index in functions; nullopt: root bus
  std::optional<std::size_t> physicalFunction;  ///< index of its PF, if it is a VF
  std::optional<unsigned> vfIndex;
  unsigned totalVfs = 0;  ///< maximum number of VFs
  unsigned vfCount = 0;   ///< current number of VFs
  std::vector<Netdev> netdevs;
  std::vector<RdmaDevice> rdma;
  std::string entry;  ///< in a guest's tree: its entry in the mapping; empty: none
};

/// A root bus of the host.
struct HostBridge {
  std::string name;  ///< the kernel's: `pci0000:3a`
  int numaNode = -1;
};

struct NumaNode {
  int number = 0;
  std::string cpuMask;  ///< sysfs format: comma-separated 32-bit words, highest first
};

/// The host's processors, by the kernel's numbering.
struct Processors {
  std::string architecture;  ///< x86_64, arm64, ppc64; empty: unknown
  std::string vendor;        ///< GenuineIntel, AuthenticAMD, ...
  unsigned family = 0;
  unsigned model = 0;
  std::vector<NumaNode> nodes;  ///< by number
};

/// Something that could not be read or is inconsistent. The rest of the topology remains valid.
struct TopologyProblem {
  std::string object;
  std::string what;
};

/// Every PCI function of a host and how the functions are connected.
struct Topology {
  Processors processors;
  std::vector<HostBridge> hostBridges;      ///< by name
  std::vector<TopologyFunction> functions;  ///< by address; a parent may follow its children
  std::vector<TopologyProblem> problems;
};

/// The function at that address; null when there is none.
const TopologyFunction* findFunction(const Topology& topology, const PciAddress& address);

bool isBridge(const TopologyFunction& function);

/// A NIC that can serve a rail: not a VF, and with SR-IOV or an RDMA device; in a guest, a NIC of
/// the mapping.
bool isPf(const TopologyFunction& function);

/// A PF with RDMA, which a GPU can use: it has an RDMA device, or it is a ConnectX (by vendor or
/// driver), whose RDMA device appears when mlx5_ib is loaded. Any other NIC without an RDMA device
/// is assumed to have no RDMA; most are management NICs.
bool isRdmaCapable(const TopologyFunction& pf);

}  // namespace vfpass
