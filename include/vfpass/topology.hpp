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

/// One end of a PCI Express link; 0 where it cannot be seen (VFs have no link of their own).
struct PcieLink {
  unsigned speed = 0;  ///< megatransfers a second and lane: 2500, 5000, 8000, 16000, 32000, 64000
  unsigned width = 0;  ///< lanes

  auto operator<=>(const PcieLink&) const = default;
};

/// What a function is for us. Bridges are told apart by their PCI Express capability.
enum class FunctionRole {
  other,
  gpu,
  nic,
  nvswitch,
  rootPort,
  upstreamPort,    ///< of a switch: the end towards the host
  downstreamPort,  ///< of a switch: one for each device below it
  bridge           ///< any other PCI-to-PCI bridge, or one whose capability cannot be read
};

std::string_view toString(FunctionRole role);

/// One port of an RDMA device.
struct RdmaPort {
  unsigned number = 1;
  std::string state;  ///< the kernel's word: ACTIVE, DOWN, INIT, ...; empty: not observable
  LinkLayer linkLayer = LinkLayer::unknown;
  unsigned rate = 0;  ///< Mbit/s
};

struct RdmaDevice {
  std::string name;
  std::string nodeGuid;
  std::string firmware;
  std::vector<RdmaPort> ports;
};

/// One PCI function in its place.
struct TopologyFunction {
  PciAddress address;
  std::string path;  ///< sysfs device path below /sys/devices
  FunctionRole role = FunctionRole::other;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t subsystemVendor = 0;
  std::uint16_t subsystemDevice = 0;
  std::uint32_t classCode = 0;  ///< 24 bits
  std::string model;            ///< from the PCI id database; only once somebody asked for it
  std::string serial;           ///< VPD; only of GPUs and of NICs that are no VFs
  std::string driver;
  std::string vfioUser;  ///< process that holds it through VFIO, by its own word; empty: none seen
  std::optional<unsigned> iommuGroup;
  int numaNode = -1;
  PcieLink link;                      ///< as it runs now
  PcieLink best;                      ///< what this end can do
  std::size_t hostBridge = 0;         ///< in Topology::hostBridges
  std::optional<std::size_t> parent;  ///< bridge above, in Topology::functions; none: root bus
  std::optional<std::size_t> physicalFunction;  ///< it is a VF of this one
  std::optional<unsigned> vfIndex;
  unsigned totalVfs = 0;  ///< VFs that it can have
  unsigned vfCount = 0;   ///< VFs that it has
  std::vector<Netdev> netdevs;
  std::vector<RdmaDevice> rdma;
  std::string entry;  ///< in a guest's tree: the mapping's entry that it is; empty: none
};

/// A root bus of the host.
struct HostBridge {
  std::string name;  ///< the kernel's: `pci0000:3a`
  int numaNode = -1;
};

struct NumaNode {
  int number = 0;
  std::string cpuMask;  ///< as sysfs has it: comma-separated words of 32 bits, highest first
};

/// The host's processors, in the kernel's numbers.
struct Processors {
  std::string architecture;  ///< x86_64, arm64, ppc64; empty: unknown
  std::string vendor;        ///< GenuineIntel, AuthenticAMD, ...
  unsigned family = 0;
  unsigned model = 0;
  std::vector<NumaNode> nodes;  ///< by number
};

/// Something that did not make sense while it was read. The rest is as good as without it.
struct TopologyProblem {
  std::string object;
  std::string what;
};

/// Every PCI function of a host, and how they hang together.
struct Topology {
  Processors processors;
  std::vector<HostBridge> hostBridges;      ///< by name
  std::vector<TopologyFunction> functions;  ///< by address; parents need not come first
  std::vector<TopologyProblem> problems;
};

/// The function at that address; null when there is none.
const TopologyFunction* findFunction(const Topology& topology, const PciAddress& address);

bool isBridge(const TopologyFunction& function);

/// A NIC that can serve a rail: no VF, with SR-IOV or an RDMA device, or one of a mapping in a
/// guest.
bool isPf(const TopologyFunction& function);

/// A PF that can do RDMA, so that a GPU gains from it: it has an RDMA device, or it is a ConnectX
/// (by vendor, or by its driver), whose RDMA device appears with the module mlx5_ib. Any other NIC
/// without an RDMA device is taken for one that has none to offer, a management NIC mostly.
bool isRdmaCapable(const TopologyFunction& pf);

}  // namespace vfpass
