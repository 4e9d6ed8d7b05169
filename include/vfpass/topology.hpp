#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/device.hpp"

namespace vfpass {

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

/// NVIDIA's Direct NIC: a PF whose data path to a GPU leads through a function of its own beside
/// the GPU, the DMA function, and not through the PF's place in the tree.
struct DirectNic {
  std::size_t dma = 0;  ///< index in Topology::functions
  std::size_t pf = 0;
};

/// Every PCI function of a host and how the functions are connected.
struct Topology {
  Processors processors;
  std::vector<HostBridge> hostBridges;  ///< by name
  std::vector<Device> functions;        ///< by address; a parent may follow its children
  std::vector<DirectNic> directNics;
  std::vector<TopologyProblem> problems;
};

/// The DMA function of a Direct NIC (15b3:2100), which belongs to a GPU.
bool isDirectNicDma(const Device& function);

/// The function at that address; null when there is none.
const Device* findFunction(const Topology& topology, const PciAddress& address);

/// A NIC that can serve a rail: not a VF, and with SR-IOV or an RDMA device; in a guest, a NIC of
/// the mapping.
bool isPf(const Device& function);

/// A PF with RDMA, which a GPU can use: it has an RDMA device, or it is a ConnectX (by vendor or
/// driver), whose RDMA device appears when mlx5_ib is loaded. Any other NIC without an RDMA device
/// is assumed to have no RDMA; most are management NICs.
bool isRdmaCapable(const Device& pf);

/// Link type of a NIC's port: Device::linkLayer, that of the first RDMA port that reports one, or
/// by the PCI class, which follows the port's type (0207 is InfiniBand, 0200 Ethernet).
LinkLayer linkTypeOf(const Device& nic);

/// Vendor and link type: RDMA works between NICs of one kind. VMs get all their rails from one.
struct NicKind {
  std::uint16_t vendor = 0;
  LinkLayer link = LinkLayer::unknown;

  auto operator<=>(const NicKind&) const = default;
};

NicKind kindOf(const Device& nic);

}  // namespace vfpass
