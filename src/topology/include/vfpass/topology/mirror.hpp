#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vfpass/guest_tree.hpp"
#include "vfpass/lease.hpp"
#include "vfpass/topology.hpp"

namespace vfpass::topology {

/// A device of the mapping that gets a place in the mirrored tree.
struct MirrorDevice {
  std::string name;          ///< the mapping's entry
  std::size_t function = 0;  ///< in the host's Topology; of a VF its PF, which sits where it sits
  /// Its place in the domain's earlier tree; empty: it gets a new one.
  std::optional<PciAddress> kept = std::nullopt;
};

struct MirrorInput {
  const Topology& host;
  /// The domain without anything of ours.
  const GuestMachine& guest;
  std::vector<MirrorDevice> devices;
  std::vector<GuestController> earlier;  ///< of all leases that the domain has; may repeat itself
  unsigned sparePorts = 0;  ///< free ports at each switch, and at each host bridge without one
};

/// Why the tree cannot be mirrored.
struct MirrorFault {
  std::string what;
  std::string remedy;
};

struct Mirror {
  std::vector<GuestPlacement>
      placements;  ///< one for each device, in their order; none with faults
  std::vector<std::string> notes;
  std::vector<MirrorFault> faults;
};

/// The places that give every pair of devices the distance in the guest that it has on the host, in
/// the words of `nvidia-smi topo -m`, with as few controllers as that takes:
///
/// - a `pcie-expander-bus` for each host bridge, bound to the guest cell of its NUMA node; in a
///   guest without cells the first host bridge is pcie-root;
/// - a root port for each device or switch right below it;
/// - a switch where the host has one above the device, or where devices share a slot; a switch
///   below another one where two of them share a host root port (PXB);
/// - each device alone at slot 0, function 0 of its port: NCCL_IB_MERGE_VFS takes any other place
///   for another device.
///
/// A place that an earlier lease has is kept, even where a new tree would look different; a pair
/// whose distance differs for that is named in the notes. Indices have no gaps, because libvirt
/// fills those with root ports: a controller that nobody needs any more stays while a higher index
/// is in use.
Mirror mirrorTree(const MirrorInput& input);

}  // namespace vfpass::topology
