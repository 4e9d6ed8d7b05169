#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// Distance between two functions, nearest first, in the terms of `nvidia-smi topo -m`.
enum class Distance {
  self,  ///< X
  pix,   ///< at most one PCI Express bridge: one switch, one root port
  pxb,   ///< several bridges, but no host bridge
  phb,   ///< a host bridge, typically the CPU
  node,  ///< between host bridges of one NUMA node
  sys    ///< between NUMA nodes, or host bridges with an unknown relation
};

std::string_view toString(Distance distance);  ///< `X`, `PIX`, ...
std::string_view explain(Distance distance);   ///< one phrase for the legend

/// Distance between two functions, by their indexes in `topology`. A switch counts as one bridge
/// although the path crosses two of its functions; so do the nested switches of one Broadcom PEX
/// chip.
Distance distance(const Topology& topology, std::size_t one, std::size_t other);

/// The function through which RDMA between a GPU and a PF goes: the DMA function of a Direct NIC,
/// if it is nearer to the GPU, otherwise the PF itself.
std::size_t dataFunction(const Topology& topology, std::size_t gpu, std::size_t pf);

/// Distance between a GPU and that function.
Distance dataDistance(const Topology& topology, std::size_t gpu, std::size_t pf);

/// The port that represents a whole switch: the upstream port of the switch that `bridge` belongs
/// to, or of the outermost of a PEX chip's nested switches. Other bridges represent themselves.
std::size_t switchOf(const Topology& topology, std::size_t bridge);

/// Distances between all devices of one VM.
struct DeviceMatrix {
  std::vector<std::string> names;  ///< the mapping's entries; other devices by address
  /// Square, in the order of `names`; nullopt where one of the two has no place in the tree.
  std::vector<std::vector<std::optional<Distance>>> distances;

  /// The distance between two entries of `names`; also nullopt if one of them is unknown.
  [[nodiscard]] std::optional<Distance> between(const std::string& one,
                                                const std::string& other) const;

  bool operator==(const DeviceMatrix&) const = default;
};

/// The machine's passed devices at their places on the host; at least PIX between two devices.
DeviceMatrix hostMatrix(const GuestMachine& machine, const Topology& host);

/// The same devices at their places in the guest.
DeviceMatrix guestMatrix(const GuestMachine& machine, const Topology& host);

/// The machine with each leased VF replaced by its PF, which exists even while the VFs do not and
/// has the same distances.
GuestMachine withPfs(GuestMachine machine, const std::vector<Lease>& leases);

/// A host bridge or a switch with everything below it: the tree without the ports that only
/// connect.
struct Branch {
  std::optional<std::size_t>
      port;  ///< upstream port of the switch; nullopt: the host bridge itself
  std::vector<std::size_t> devices;  ///< directly below, by address
  std::vector<Branch> branches;      ///< switches and other bridges below, by address
};

/// Selects the part of a host to show.
struct BranchChoice {
  std::function<bool(const Device&)> device;  ///< functions that are shown
  bool mergeChips = true;                     ///< nested switches of one PEX chip are one
};

/// One branch for each host bridge, by their numbers, with everything on the path to a shown
/// device. Root ports are omitted, because each has only one slot below it.
std::vector<Branch> branchesOf(const Topology& topology, const BranchChoice& choice);

}  // namespace vfpass::topology
